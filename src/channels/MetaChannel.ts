/**
 * Differences between WhatsApp and Messenger in sending: the bodies for `POST {base}/{externalId}/messages`, and how to
 * read the answers.
 */
import type * as Option from "effect/Option"
import type { CarriedFile } from "../capabilities/ChannelAdapters.ts"
import type { AttachmentType } from "../domain/channels/Attachment.ts"
import type { ContactAlias } from "../domain/channels/Channel.ts"
import type { OutboxId } from "../domain/Ids.ts"
import type { JsonObject } from "../domain/Text.ts"

export interface Outgoing {
  /** Aliases of the contact, the newest of each kind first. */
  readonly aliases: ReadonlyArray<ContactAlias>
  readonly body: string
  /** Returned in statuses and echoes. */
  readonly outboxId: OutboxId
}

export interface OutgoingFile extends Outgoing {
  readonly as: CarriedFile["as"]
  /** The provider's id of the uploaded file. */
  readonly fileId: string
  readonly name: string
}

/** The form for uploading a file: `POST {base}/{externalId}/{path}`. */
export interface UploadForm {
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  readonly fileField: string
}

export interface MetaChannel {
  /** Maximum text length of one message, in UTF-16 units. */
  readonly maxTextLength: number
  /** Converts a model's Markdown to the channel's format. */
  readonly formatText: (text: string) => string
  /** Null when the channel cannot send to any of the aliases. */
  readonly text: (outgoing: Outgoing) => JsonObject | null
  /** File types that the provider accepts. */
  readonly fileTypes: Partial<Record<AttachmentType, CarriedFile>>
  /** Maximum caption length of a file, in UTF-16 units; 0 if captions are not supported. */
  readonly maxCaptionLength: number
  readonly upload: (as: CarriedFile["as"], mimeType: string) => UploadForm
  /** The id of the uploaded file; none if the answer has none. */
  readonly uploadedFileId: (answer: unknown) => Option.Option<string>
  /** Null when the channel cannot send to any of the aliases. */
  readonly file: (outgoing: OutgoingFile) => JsonObject | null
  /** The provider's id of the message; none if the answer does not confirm it. */
  readonly messageId: (answer: unknown) => Option.Option<string>
  /** Marks the contact's last message as read, and shows a typing indicator. */
  readonly markSeen: (aliases: ReadonlyArray<ContactAlias>, messageId: string) => ReadonlyArray<JsonObject>
}
