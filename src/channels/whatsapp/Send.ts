/** Requests to WhatsApp: send a text or a file, mark a message as read, show typing. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ContactAlias } from "../../domain/channels/Channel.ts"
import type { JsonObject } from "../../domain/Text.ts"
import { markdownFormatter } from "../Markdown.ts"
import type { Outgoing, MetaChannel, OutgoingFile } from "../MetaChannel.ts"
import { MiB } from "../../domain/Bytes.ts"

const Accepted = Schema.Struct({
  messages: Schema.NonEmptyArray(Schema.Struct({ id: Schema.NonEmptyString }))
})
const decodeSent = Schema.decodeUnknownOption(Accepted)

const digits = /^\d{5,20}$/

/**
 * The phone number when known, else the user id. The provider answers a user id in `to` with 200 and drops the message,
 * so `to` contains only phone numbers.
 */
const recipient = (aliases: ReadonlyArray<ContactAlias>): JsonObject | null => {
  const phone = aliases.find(({ kind, value }) => kind === "phone" && digits.test(value))
  if (phone !== undefined) return { to: phone.value }
  const user =
    aliases.find(({ kind }) => kind === "user_id") ?? aliases.find(({ kind }) => kind === "parent_user_id")
  return user === undefined ? null : { recipient: user.value }
}

const message = ({ aliases, outboxId }: Outgoing, content: JsonObject): JsonObject | null => {
  const to = recipient(aliases)
  if (to === null) return null
  return {
    messaging_product: "whatsapp",
    recipient_type: "individual",
    ...to,
    ...content,
    biz_opaque_callback_data: outboxId
  }
}

const text = (outgoing: Outgoing) =>
  message(outgoing, { type: "text", text: { body: outgoing.body, preview_url: false } })

/** Only a document has a file name. */
const file = ({ as, fileId, name, ...outgoing }: OutgoingFile) =>
  message(outgoing, {
    type: as,
    [as]: {
      id: fileId,
      ...(outgoing.body === "" ? {} : { caption: outgoing.body }),
      ...(as === "document" ? { filename: name } : {})
    }
  })

const decodeUpload = Schema.decodeUnknownOption(Schema.Struct({ id: Schema.NonEmptyString }))

const picture = { as: "image", maxBytes: 5 * MiB } as const

export const whatsapp: MetaChannel = {
  maxTextLength: 4_096,
  formatText: markdownFormatter({ strong: "*", emphasis: "_", code: "`", fence: "```" }),
  text,
  // WebP is only for stickers, and GIF is not supported.
  fileTypes: {
    "image/jpeg": picture,
    "image/png": picture,
    "application/pdf": { as: "document", maxBytes: 100 * MiB }
  },
  maxCaptionLength: 1_024,
  upload: (_, mimeType) => ({
    path: "media",
    fields: { messaging_product: "whatsapp", type: mimeType },
    fileField: "file"
  }),
  uploadedFileId: (answer) => Option.map(decodeUpload(answer), ({ id }) => id),
  file,
  messageId: (answer) => Option.map(decodeSent(answer), ({ messages: [{ id }] }) => id),
  markSeen: (_, messageId) => [
    {
      messaging_product: "whatsapp",
      status: "read",
      message_id: messageId,
      typing_indicator: { type: "text" }
    }
  ]
}
