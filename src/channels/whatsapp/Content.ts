/** Content of a WhatsApp message. Locations, contacts and orders become text that a model can read. */
import type { InboundMedia, InboundMessage } from "../../domain/channels/Channel.ts"
import { coordinatesOf, type Fields, fieldsOf, optionalMember, textOf, identifierOf } from "../Fields.ts"
import { phoneOf } from "./Contact.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

export type Content = Pick<InboundMessage, "text" | "media"> & {
  readonly kind: "text" | "media" | "interactive"
}

const textContent = (kind: "text" | "interactive", text: string): Content | undefined =>
  text === "" ? undefined : { kind, text, media: [] }

const joinedParts = (parts: ReadonlyArray<string | undefined>, between = ", ") =>
  parts.filter((part) => part !== undefined && part !== "").join(between)

const mediaKinds = {
  image: "image",
  video: "video",
  audio: "audio",
  voice: "audio",
  document: "document",
  sticker: "sticker"
} as const satisfies Record<string, InboundMedia["kind"]>

const mediaOf =
  (kind: InboundMedia["kind"], name: string) =>
  (message: Fields): Content | undefined => {
    const file = fieldsOf(message[name])
    const [id, url] = [identifierOf(file["id"]), identifierOf(file["link"] ?? file["url"], 8_192)]
    if (id === undefined && url === undefined) return undefined
    const caption = textOf(file["caption"])
    const media: InboundMedia = {
      kind,
      ...optionalMember("id", id),
      ...optionalMember("url", url),
      ...optionalMember("mimeType", identifierOf(file["mime_type"], 200)),
      ...optionalMember("fileName", identifierOf(file["filename"])),
      ...optionalMember("caption", caption === "" ? undefined : caption)
    }
    return { kind: "media", text: caption, media: [media] }
  }

const location = (message: Fields) => {
  const { name, address, latitude, longitude, url } = fieldsOf(message["location"])
  const place = joinedParts([
    identifierOf(name, 1_000),
    identifierOf(address, 1_000),
    identifierOf(url, 2_048)
  ])
  const text = joinedParts([place, coordinatesOf(latitude, longitude)], " ")
  return text === "" ? undefined : textContent("text", `Location: ${text}`)
}

const fieldOfEach = (values: unknown, name: string) =>
  itemsOf(values).map((value) => identifierOf(fieldsOf(value)[name], 1_000))

const contacts = (message: Fields) => {
  const lines = itemsOf(message["contacts"]).map((contact) => {
    const fields = fieldsOf(contact)
    const name = fieldsOf(fields["name"])
    return joinedParts([
      identifierOf(name["formatted_name"], 1_000) ?? identifierOf(name["first_name"], 1_000),
      ...fieldOfEach(fields["phones"], "phone").map((phone) =>
        phoneOf(phone) === undefined ? undefined : phone
      ),
      ...fieldOfEach(fields["emails"], "email")
    ])
  })
  return textContent(
    "text",
    joinedParts(
      lines.map((line) => (line === "" ? "" : `Contact: ${line}`)),
      "\n"
    )
  )
}

const order = (message: Fields) => {
  const { text, product_items: items } = fieldsOf(message["order"])
  const lines = itemsOf(items).map((item) => {
    const { product_retailer_id: id, quantity, item_price: price, currency } = fieldsOf(item)
    const cost = joinedParts([identifierOf(String(price ?? ""), 40), identifierOf(currency, 10)], " ")
    return `${identifierOf(String(quantity ?? 1), 40) ?? "1"} × ${identifierOf(id) ?? "?"}${cost === "" ? "" : ` (${cost})`}`
  })
  const ordered = lines.length === 0 ? "" : `Order: ${lines.join(", ")}`
  return textContent("text", joinedParts([textOf(text), ordered], "\n"))
}

const interactive = (message: Fields) => {
  const reply = fieldsOf(message["interactive"])
  const chosen = fieldsOf(reply["button_reply"] ?? reply["list_reply"])
  const form = fieldsOf(reply["nfm_reply"])
  return textContent(
    "interactive",
    identifierOf(chosen["title"], 4_096) ??
      identifierOf(chosen["id"]) ??
      joinedParts([textOf(form["body"]), textOf(form["response_json"])], "\n")
  )
}

const button = (message: Fields) => {
  const { text, payload } = fieldsOf(message["button"])
  return textContent("interactive", identifierOf(text, 4_096) ?? textOf(payload))
}

/** By `type`. Other types have no content to answer: reactions, edits, unknown kinds. */
const contents: ReadonlyMap<string, (message: Fields) => Content | undefined> = new Map([
  ["text", (message: Fields) => textContent("text", textOf(fieldsOf(message["text"])["body"]))],
  ...Object.entries(mediaKinds).map(([name, kind]) => [name, mediaOf(kind, name)] as const),
  ["location", location],
  ["contacts", contacts],
  ["order", order],
  ["interactive", interactive],
  ["button", button]
])

/** Undefined for an ignored message. */
export const contentOf = (message: Fields): Content | undefined =>
  contents.get(identifierOf(message["type"]) ?? "")?.(message)

/** Content of a message sent from the account, including templates and the business's own lists and buttons. */
export const sentContentOf = (message: Fields): Content | undefined => {
  const template = fieldsOf(message["template"])
  const body = fieldsOf(fieldsOf(message["interactive"])["body"])
  return (
    contentOf(message) ??
    (message["type"] === "interactive" ? textContent("text", textOf(body["text"])) : undefined) ??
    (message["type"] === "template"
      ? textContent("text", `Template: ${identifierOf(template["name"]) ?? "?"}`)
      : undefined)
  )
}
