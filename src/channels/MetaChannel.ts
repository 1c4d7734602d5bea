/** Differences between WhatsApp and Messenger in sending: bodies for `POST {base}/{externalId}/messages`, and their answers. */
import type * as Option from "effect/Option"
import type { AttachmentType } from "../domain/channels/Attachment.ts"
import type { ContactAlias } from "../domain/channels/Channel.ts"
import type { OutboxId } from "../domain/Ids.ts"
import type { JsonObject } from "../domain/Text.ts"

export interface Outgoing {
  /** Of the contact, the newest of a kind first. */
  readonly aliases: ReadonlyArray<ContactAlias>
  readonly body: string
  /** Comes back in statuses and echoes. */
  readonly outboxId: OutboxId
}

export interface OutgoingFile extends Outgoing {
  readonly as: "image" | "document"
  /** Of the uploaded file, at the provider. */
  readonly fileId: string
  readonly name: string
}

/** How the channel shows a type of file, and the most bytes that it takes of it. */
export interface Carried {
  readonly as: "image" | "document"
  readonly maxBytes: number
}

/** The form by which the provider is given a file: `POST {base}/{externalId}/{path}`. */
export interface UploadForm {
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  readonly fileField: string
}

export interface MetaChannel {
  /** Longest text of one message, in UTF-16 units. */
  readonly limit: number
  /** A model's Markdown as the channel shows it. */
  readonly shown: (text: string) => string
  /** Null when none of the aliases can be written to. */
  readonly text: (outgoing: Outgoing) => JsonObject | null
  /** Types that are missing are not taken by the provider. */
  readonly carries: Partial<Record<AttachmentType, Carried>>
  /** Longest text beside a file, in UTF-16 units; 0 where there is none. */
  readonly captionLimit: number
  readonly upload: (as: Carried["as"], mimeType: string) => UploadForm
  /** The id that messages name the uploaded file by; none in an answer that has none. */
  readonly uploaded: (answer: unknown) => Option.Option<string>
  /** Null when none of the aliases can be written to. */
  readonly file: (outgoing: OutgoingFile) => JsonObject | null
  /** The provider's id of the message; none in an answer that does not say that it was taken. */
  readonly accepted: (answer: unknown) => Option.Option<string>
  /** Marks the contact's last message as read, and shows that an answer is being written. */
  readonly seen: (aliases: ReadonlyArray<ContactAlias>, messageId: string) => ReadonlyArray<JsonObject>
}
