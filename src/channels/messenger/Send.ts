/** Requests to Messenger: send a text or a file, mark a message as read, show typing. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ContactAlias } from "../../domain/channels/Channel.ts"
import type { JsonObject } from "../../domain/Text.ts"
import { shownAs } from "../Markdown.ts"
import type { Outgoing, MetaChannel, OutgoingFile } from "../MetaChannel.ts"
import { MiB } from "../../domain/Bytes.ts"

const decode = Schema.decodeUnknownOption(Schema.Struct({ message_id: Schema.NonEmptyString }))

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

/** Messenger's names of the types. */
const types = { image: "image", document: "file" } as const

const file = ({ as, fileId, ...outgoing }: OutgoingFile) =>
  message(outgoing, { attachment: { type: types[as], payload: { attachment_id: fileId } } })

const decodeUpload = Schema.decodeUnknownOption(
  Schema.Struct({ attachment_id: Schema.Union(Schema.NonEmptyString, Schema.Int) })
)

const picture = { as: "image", maxBytes: 8 * MiB } as const
const document = { as: "document", maxBytes: 25 * MiB } as const

export const messenger: MetaChannel = {
  limit: 2_000,
  shown: shownAs({ strong: "", emphasis: "", code: "", fence: "" }),
  text,
  carries: {
    "image/jpeg": picture,
    "image/png": picture,
    "image/gif": picture,
    "image/webp": document,
    "application/pdf": document
  },
  captionLimit: 0,
  upload: (as) => ({
    path: "message_attachments",
    fields: { message: JSON.stringify({ attachment: { type: types[as], payload: { is_reusable: true } } }) },
    fileField: "filedata"
  }),
  uploaded: (answer) => Option.map(decodeUpload(answer), ({ attachment_id: id }) => String(id)),
  file,
  accepted: (answer) => Option.map(decode(answer), ({ message_id: id }) => id),
  seen: (aliases) => {
    const to = recipient(aliases)
    return to === null ? [] : ["mark_seen", "typing_on"].map((action) => ({ ...to, sender_action: action }))
  }
}
