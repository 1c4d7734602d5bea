/**
 * Telegram's webhooks, one update per delivery. The contact is the chat, not the writer: a private chat is one person,
 * and in a group the bot answers when addressed. A topic of a forum is a chat of its own.
 */
import type * as DateTime from "effect/DateTime"
import type { ChannelAccess, Normalized } from "../../capabilities/ChannelAdapters.ts"
import type { Arrival, ContactAlias, InboundMedia, InboundMessage } from "../../domain/channels/Channel.ts"
import {
  coordinatesOf,
  type Fields,
  fieldsOf,
  optionalMember,
  timestampOf,
  textOf,
  identifierOf
} from "../Fields.ts"
import { arrivalOrIgnored, ignored } from "../Normalized.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

const channel = "telegram"

/** `{chat}` or `{chat}:{topic}`. */
const chatIdOf = (message: Fields): string | undefined => {
  const chat = identifierOf(fieldsOf(message["chat"])["id"], 30)
  const topic =
    message["is_topic_message"] === true ? identifierOf(message["message_thread_id"], 30) : undefined
  return chat === undefined || topic === undefined ? chat : `${chat}:${topic}`
}

const alias = (value: string): ContactAlias => ({ kind: "chat_id", value })

/** The entities of a text or a caption, with their text in lower case. */
const entitiesOf = (message: Fields) =>
  [
    ["text", "entities"],
    ["caption", "caption_entities"]
  ].flatMap(([text = "", entities = ""]) => {
    const content = message[text]
    if (typeof content !== "string") return []
    return itemsOf(message[entities]).map((item) => {
      const { length, offset, type, user } = fieldsOf(item)
      const [from, size] = [Number(offset), Number(length)]
      const entityText =
        Number.isSafeInteger(from) && Number.isSafeInteger(size) ? content.slice(from, from + size) : ""
      return { type, text: entityText.toLowerCase(), userId: identifierOf(fieldsOf(user)["id"], 30) }
    })
  })

/** Whether a message in a group is for the bot: it mentions the bot, is a command, or replies to the bot. */
const isForBot = (message: Fields, bot: string, username: string) => {
  const answered = fieldsOf(fieldsOf(message["reply_to_message"])["from"])
  if (identifierOf(answered["id"], 30) === bot) return true
  const name = `@${username.toLowerCase()}`
  return entitiesOf(message).some(({ text, type, userId }) => {
    if (type === "text_mention") return userId === bot
    if (username === "") return false
    return type === "mention" ? text === name : type === "bot_command" && text.endsWith(name)
  })
}

const kinds = {
  document: "document",
  video: "video",
  animation: "video",
  video_note: "video",
  voice: "audio",
  audio: "audio",
  sticker: "sticker"
} as const satisfies Record<string, InboundMedia["kind"]>

const fileOf = (kind: InboundMedia["kind"], value: unknown): ReadonlyArray<InboundMedia> => {
  const file = fieldsOf(value)
  const id = identifierOf(file["file_id"])
  if (id === undefined) return []
  return [
    {
      kind,
      id,
      ...optionalMember("mimeType", identifierOf(file["mime_type"], 200)),
      ...optionalMember("fileName", identifierOf(file["file_name"]))
    }
  ]
}

/** A picture comes in several sizes, the largest last. An animation also comes as a document. */
const mediaOf = (message: Fields): ReadonlyArray<InboundMedia> => {
  const pictures = fileOf("image", itemsOf(message["photo"]).at(-1))
  const isAnimation = message["animation"] !== undefined
  const others = Object.entries(kinds).flatMap(([name, kind]) =>
    name === "document" && isAnimation ? [] : fileOf(kind, message[name])
  )
  return [...pictures, ...others]
}

/** A location or a contact as text; empty if there is neither. */
const textOfAttached = (message: Fields): string => {
  const { latitude, longitude } = fieldsOf(message["location"])
  const { first_name: first, last_name: last, phone_number: phone } = fieldsOf(message["contact"])
  const name = [identifierOf(first, 500), identifierOf(last, 500), identifierOf(phone, 40)].filter(
    (part) => part !== undefined
  )
  const coordinates = coordinatesOf(latitude, longitude)
  if (coordinates !== "") return `Location: ${coordinates}`
  return name.length === 0 ? "" : `Contact: ${name.join(", ")}`
}

const nameOf = (from: Fields) =>
  identifierOf(
    [from["first_name"], from["last_name"]].map((part) => identifierOf(part, 500) ?? "").join(" "),
    1_000
  )

/** Undefined for a message without content to answer. */
const contentOf = (message: Fields): Pick<InboundMessage, "kind" | "text" | "media"> | undefined => {
  const media = mediaOf(message)
  const text =
    [textOf(message["text"]), textOf(message["caption"]), textOfAttached(message)].find(
      (part) => part !== ""
    ) ?? ""
  if (text === "" && media.length === 0) return undefined
  return { kind: media.length > 0 ? "media" : "text", text, media }
}

/** A group that was converted to a supergroup has a new id. */
const chatMigration = (accountId: string, message: Fields, now: DateTime.Utc): Arrival | undefined => {
  const [before, after] = [chatIdOf(message), identifierOf(message["migrate_to_chat_id"], 30)]
  if (before === undefined || after === undefined) return undefined
  return {
    event: {
      _tag: "AliasUpdate",
      channel,
      accountId,
      aliases: [alias(before), alias(after)],
      timestamp: timestampOf(message["date"], 1_000, now)
    },
    raw: message
  }
}

/** `access` belongs to the bot: groups address it by `profile.username`. */
export const normalize = (body: unknown, now: DateTime.Utc, access: ChannelAccess): Normalized => {
  const { externalId: accountId, profile } = access
  const update = fieldsOf(body)
  const message = fieldsOf(update["message"])
  if (message["migrate_to_chat_id"] !== undefined)
    return arrivalOrIgnored(chatMigration(accountId, message, now))
  const updateId = identifierOf(update["update_id"], 30)
  const chat = chatIdOf(message)
  const content = contentOf(message)
  const from = fieldsOf(message["from"])
  if (updateId === undefined || chat === undefined || content === undefined) return ignored
  if (from["is_bot"] === true) return ignored
  const isPrivate = fieldsOf(message["chat"])["type"] === "private"
  if (!isPrivate && !isForBot(message, accountId, profile["username"] ?? "")) return ignored
  return arrivalOrIgnored({
    event: {
      _tag: "Message",
      channel,
      accountId,
      // Update ids are unique per bot.
      messageId: `${accountId}:${updateId}`,
      from: [alias(chat)],
      ...optionalMember("profileName", nameOf(from)),
      ...content,
      standby: false,
      timestamp: timestampOf(message["date"], 1_000, now)
    },
    raw: update
  })
}
