/** Messaging channels: what providers deliver, normalized, and where replies go. */
import type * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { OutboxId } from "../Ids.ts"
import { Text } from "../Text.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/**
 * The name of a provider that customers write through, as its adapter was registered; `/v1` and the widget are no channels of
 * this kind.
 */
export const MessagingChannel = Schema.String.pipe(
  Schema.pattern(/^[a-z][a-z0-9-]{0,31}$/, { message: () => "Expected the name of a channel" })
)
export type MessagingChannel = typeof MessagingChannel.Type

/**
 * One name of a contact. WhatsApp: `phone` in digits, `user_id` and `parent_user_id` (business-scoped user ids);
 * Messenger: `page_scoped_id`; Telegram: `chat_id`; Slack and e-mail: `thread`. The same alias means the same person.
 */
export const ContactAlias = Schema.Struct({
  kind: Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9_]{0,31}$/)),
  value: Text.pipe(Schema.minLength(1), Schema.maxLength(256))
})
export type ContactAlias = typeof ContactAlias.Type

/** A file of an inbound message: named by `id` (fetched with the channel's token), by `url`, or `data`; none for a fallback. */
export const InboundMedia = Schema.Struct({
  kind: Schema.Literal("image", "video", "audio", "document", "sticker", "other"),
  id: optional(Text),
  url: optional(Text),
  /** The file itself in base64, where a delivery brings it. */
  data: optional(Text),
  mimeType: optional(Text),
  fileName: optional(Text),
  caption: optional(Text)
})
export type InboundMedia = typeof InboundMedia.Type

/** What an echo says of who sent it: the metadata we gave our own sends, the provider's app. */
const EchoOrigin = Schema.Struct({ outboxId: optional(OutboxId), appId: optional(Text) })

/** By names of the adapter's own. */
export const MessageContext = Schema.Record({ key: Schema.String, value: Text })
export type MessageContext = typeof MessageContext.Type

/** One message of a customer, or the echo of one that a human (or we) sent from the account. */
export const InboundMessage = Schema.Struct({
  _tag: Schema.Literal("Message"),
  channel: MessagingChannel,
  /** The account it came to: phone number id, Page id, bot id. */
  accountId: Text,
  /** The provider's id, unique in its channel. */
  messageId: Text,
  /** Of the customer, also for an echo. */
  from: Schema.NonEmptyArray(ContactAlias),
  profileName: optional(Text),
  kind: Schema.Literal("text", "media", "interactive", "echo"),
  /** The customer's message: text, caption, or title of the chosen button. Empty for media without a caption. */
  text: Text,
  media: Schema.Array(InboundMedia),
  /** Only of echoes. */
  origin: optional(EchoOrigin),
  /** True when another app owns the thread, or nothing proves who wrote: stored, not answered. */
  standby: Schema.Boolean,
  /** Messages of the same sender are counted together, where a contact may open any number of conversations. */
  sender: optional(Text),
  /** Returned to the adapter with the reply, such as the subject. */
  context: optional(MessageContext),
  /** The time at which the provider received it. */
  timestamp: Schema.DateTimeUtc
})
export type InboundMessage = typeof InboundMessage.Type

/** A contact has got a new name (`user_id_update`, a changed number): both names are one person. */
export const AliasUpdate = Schema.Struct({
  _tag: Schema.Literal("AliasUpdate"),
  channel: MessagingChannel,
  accountId: Text,
  aliases: Schema.NonEmptyArray(ContactAlias),
  timestamp: Schema.DateTimeUtc
})
export type AliasUpdate = typeof AliasUpdate.Type

/** What is queued of a webhook, in the order it came. */
export const InboundEvent = Schema.Union(InboundMessage, AliasUpdate)
export type InboundEvent = typeof InboundEvent.Type

/** An event and what it was made from: the item as the provider sent it, and what stood around it. */
export interface Arrival {
  readonly event: InboundEvent
  readonly raw: unknown
}

/** How far a message of ours has come; later ones are never undone by earlier ones. */
export const Delivery = Schema.Literal("sent", "delivered", "read", "failed")
export type Delivery = typeof Delivery.Type

/** A status the provider tells of one of our messages: acknowledged and applied, not queued. */
export interface DeliveryStatus {
  readonly channel: MessagingChannel
  readonly accountId: string
  /** Null for a Messenger watermark. */
  readonly providerMessageId: string | null
  /** The opaque metadata that we sent with the message. */
  readonly outboxId: OutboxId | null
  readonly delivery: Delivery
  readonly error: string | null
  /** Messenger alone: everything sent to this person up to then has come as far. */
  readonly watermark?: { readonly pageScopedId: string; readonly until: DateTime.Utc }
}

/**
 * The answer to a delivery. Messages and echoes count: `enqueued` those that are new,
 * `dedupedCount` those that came before, within the same delivery too.
 */
export const Delivered = Schema.Struct({
  received: Schema.Boolean,
  deduped: Schema.Boolean,
  dedupedCount: Schema.Int,
  enqueued: Schema.Int
})
export type Delivered = typeof Delivered.Type
