/** Messaging channels: normalized events from providers, and where replies go. */
import type * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { OutboxId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { Text } from "../Text.ts"

/**
 * The name of a provider that customers write through, as its adapter was registered. `/v1` and the widget are not
 * messaging channels.
 */
export const MessagingChannel = Schema.String.pipe(
  Schema.pattern(/^[a-z][a-z0-9-]{0,31}$/, { message: () => "Expected the name of a channel" })
)
export type MessagingChannel = typeof MessagingChannel.Type

/**
 * One alias of a contact. WhatsApp: `phone` in digits, `user_id` and `parent_user_id` (business-scoped user ids);
 * Messenger: `page_scoped_id`; Telegram: `chat_id`; Slack and e-mail: `thread`. The same alias means the same person.
 */
export const ContactAlias = Schema.Struct({
  kind: Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9_]{0,31}$/)),
  value: Text.pipe(Schema.minLength(1), Schema.maxLength(256))
})
export type ContactAlias = typeof ContactAlias.Type

/**
 * A file of an inbound message. It has an `id` (fetched with the channel's token), a `url` or `data`; a fallback has
 * none.
 */
export const InboundMedia = Schema.Struct({
  kind: Schema.Literal("image", "video", "audio", "document", "sticker", "other"),
  id: optional(Text),
  url: optional(Text),
  /** The file itself in base64, if the delivery contains it. */
  data: optional(Text),
  mimeType: optional(Text),
  fileName: optional(Text),
  caption: optional(Text)
})
export type InboundMedia = typeof InboundMedia.Type

/** Sender information of an echo: the metadata of our own messages, and the provider's app. */
const EchoOrigin = Schema.Struct({ outboxId: optional(OutboxId), appId: optional(Text) })

/** Values by names that the adapter chooses. */
export const MessageContext = Schema.Record({ key: Schema.String, value: Text })
export type MessageContext = typeof MessageContext.Type

/** A message of a customer, or the echo of one that a human (or we) sent from the account. */
export const InboundMessage = Schema.Struct({
  _tag: Schema.Literal("Message"),
  channel: MessagingChannel,
  /** The account that received it: phone number id, Page id, bot id. */
  accountId: Text,
  /** The provider's id, unique in its channel. */
  messageId: Text,
  /** The customer's aliases, also for an echo. */
  from: Schema.NonEmptyArray(ContactAlias),
  profileName: optional(Text),
  kind: Schema.Literal("text", "media", "interactive", "echo"),
  /** The customer's message: text, caption, or title of the chosen button. Empty for media without a caption. */
  text: Text,
  media: Schema.Array(InboundMedia),
  /** Present for echoes only. */
  origin: optional(EchoOrigin),
  /** True when another app owns the thread, or the sender is not proven. The message is stored, not answered. */
  standby: Schema.Boolean,
  /** Rate limits count messages of one sender together, because a contact may open any number of conversations. */
  sender: optional(Text),
  /** Returned to the adapter with the reply, such as the subject. */
  context: optional(MessageContext),
  /** The time at which the provider received it. */
  timestamp: Schema.DateTimeUtc
})
export type InboundMessage = typeof InboundMessage.Type

/** A contact has a new alias, such as a changed number. The old and the new alias belong to one person. */
export const AliasUpdate = Schema.Struct({
  _tag: Schema.Literal("AliasUpdate"),
  channel: MessagingChannel,
  accountId: Text,
  aliases: Schema.NonEmptyArray(ContactAlias),
  timestamp: Schema.DateTimeUtc
})
export type AliasUpdate = typeof AliasUpdate.Type

/** Events of a webhook that are queued, in order of arrival. */
export const InboundEvent = Schema.Union(InboundMessage, AliasUpdate)
export type InboundEvent = typeof InboundEvent.Type

/** An event, and the provider's item that it was made from. */
export interface Arrival {
  readonly event: InboundEvent
  readonly raw: unknown
}

/** Delivery state of an outgoing message. A later state is never replaced by an earlier one. */
export const Delivery = Schema.Literal("sent", "delivered", "read", "failed")
export type Delivery = typeof Delivery.Type

/** A delivery status reported by the provider for an outgoing message. It is applied at once, not queued. */
export interface DeliveryStatus {
  readonly channel: MessagingChannel
  readonly accountId: string
  /** Null for a Messenger watermark. */
  readonly providerMessageId: string | null
  /** The opaque metadata that we sent with the message. */
  readonly outboxId: OutboxId | null
  readonly delivery: Delivery
  readonly error: string | null
  /** Messenger only: everything sent to this person up to `until` has this status. */
  readonly watermark?: { readonly pageScopedId: string; readonly until: DateTime.Utc }
}

/**
 * The answer to a delivery. It counts messages and echoes: `enqueued` are new, `dedupedCount` are repeats, also within the
 * same delivery.
 */
export const DeliveryResult = Schema.Struct({
  received: Schema.Boolean,
  deduped: Schema.Boolean,
  dedupedCount: Schema.Int,
  enqueued: Schema.Int
})
export type DeliveryResult = typeof DeliveryResult.Type
