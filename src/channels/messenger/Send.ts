/** Requests to Messenger: send a text or a file, mark a message as read, show typing. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ContactAlias } from "../../domain/channels/Channel.ts"
import type { JsonObject } from "../../domain/Text.ts"
import { markdownFormatter } from "../Markdown.ts"
import type { Outgoing, MetaChannel, OutgoingFile } from "../MetaChannel.ts"
import { MiB } from "../../domain/Bytes.ts"

const decodeSent = Schema.decodeUnknownOption(Schema.Struct({ message_id: Schema.NonEmptyString }))

const recipient = (aliases: ReadonlyArray<ContactAlias>): JsonObject | null => {
  const person = aliases.find(({ kind }) => kind === "page_scoped_id")
  return person === undefined ? null : { recipient: { id: person.value } }
}

const message = ({ aliases, outboxId }: Outgoing, content: JsonObject): JsonObject | null => {
  const to = recipient(aliases)
  return to === null
    ? null
    : { ...to, messaging_type: "RESPONSE", message: { ...content, metadata: outboxId } }
}

const text = (outgoing: Outgoing) => message(outgoing, { text: outgoing.body })

/** Messenger's names for the kinds of files. */
const typeNames = { image: "image", document: "file" } as const

const file = ({ as, fileId, ...outgoing }: OutgoingFile) =>
  message(outgoing, { attachment: { type: typeNames[as], payload: { attachment_id: fileId } } })

const decodeUpload = Schema.decodeUnknownOption(
  Schema.Struct({ attachment_id: Schema.Union(Schema.NonEmptyString, Schema.Int) })
)

const picture = { as: "image", maxBytes: 8 * MiB } as const
const document = { as: "document", maxBytes: 25 * MiB } as const

export const messenger: MetaChannel = {
  maxTextLength: 2_000,
  formatText: markdownFormatter({ strong: "", emphasis: "", code: "", fence: "" }),
  text,
  fileTypes: {
    "image/jpeg": picture,
    "image/png": picture,
    "image/gif": picture,
    "image/webp": document,
    "application/pdf": document
  },
  maxCaptionLength: 0,
  upload: (as) => ({
    path: "message_attachments",
    fields: {
      message: JSON.stringify({ attachment: { type: typeNames[as], payload: { is_reusable: true } } })
    },
    fileField: "filedata"
  }),
  uploadedFileId: (answer) => Option.map(decodeUpload(answer), ({ attachment_id: id }) => String(id)),
  file,
  messageId: (answer) => Option.map(decodeSent(answer), ({ message_id: id }) => id),
  markSeen: (aliases) => {
    const to = recipient(aliases)
    return to === null ? [] : ["mark_seen", "typing_on"].map((action) => ({ ...to, sender_action: action }))
  }
}
