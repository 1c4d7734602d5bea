/** Content of a Messenger message. */
import type { InboundMedia } from "../../domain/channels/Channel.ts"
import { coordinatesOf, type Fields, fieldsOf, optionalMember, textOf, identifierOf } from "../Fields.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

const kinds: ReadonlyMap<string, InboundMedia["kind"]> = new Map([
  ["image", "image"],
  ["video", "video"],
  ["reel", "video"],
  ["ig_reel", "video"],
  ["audio", "audio"],
  ["file", "document"]
])

interface Attached {
  readonly media: ReadonlyArray<InboundMedia>
  /** The text of the attachment itself. */
  readonly text: string
}

const location = (payload: Fields): Attached => {
  const { lat, long } = fieldsOf(payload["coordinates"])
  const coordinates = coordinatesOf(lat, long)
  return { media: [], text: coordinates === "" ? "" : `Location: ${coordinates}` }
}

/** A shared link or product, with a title and an address; both are optional. */
const shared = (attachment: Fields, payload: Fields): Attached => {
  const title = identifierOf(attachment["title"], 4_096) ?? identifierOf(payload["title"], 4_096)
  const url = identifierOf(attachment["url"], 8_192) ?? identifierOf(payload["url"], 8_192)
  const text = [title, url].filter((part) => part !== undefined).join(" ")
  return {
    media: [{ kind: "other", ...optionalMember("url", url), ...optionalMember("fileName", title) }],
    text
  }
}

const attachedOf = (item: unknown): Attached => {
  const attachment = fieldsOf(item)
  const payload = fieldsOf(attachment["payload"])
  const type = identifierOf(attachment["type"])
  if (type === "location") return location(payload)
  const kind = kinds.get(type ?? "")
  if (kind === undefined) return shared(attachment, payload)
  const isSticker = identifierOf(payload["sticker_id"]) !== undefined
  const media: InboundMedia = {
    kind: isSticker ? "sticker" : kind,
    ...optionalMember("url", identifierOf(payload["url"], 8_192)),
    ...optionalMember("fileName", identifierOf(payload["title"]) ?? identifierOf(attachment["name"]))
  }
  return { media: [media], text: "" }
}

export interface Content {
  readonly kind: "text" | "media" | "interactive"
  readonly text: string
  readonly media: ReadonlyArray<InboundMedia>
}

/** Undefined for a message without content, such as deleted messages and unknown kinds. */
export const contentOf = (message: Fields): Content | undefined => {
  if (message["is_deleted"] === true || message["is_unsupported"] === true) return undefined
  const attached = itemsOf(message["attachments"]).map(attachedOf)
  const media = attached.flatMap((one) => one.media)
  const ownText = textOf(message["text"])
  const text =
    ownText === ""
      ? attached
          .map((one) => one.text)
          .filter((part) => part !== "")
          .join("\n")
      : ownText
  if (text === "" && media.length === 0) return undefined
  if (media.length > 0) return { kind: "media", text, media }
  return { kind: Object.hasOwn(message, "quick_reply") ? "interactive" : "text", text, media }
}
