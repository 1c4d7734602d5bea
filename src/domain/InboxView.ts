/** Conversations as the dashboard's inbox shows them (contract 3). */
import * as Schema from "effect/Schema"
import { StoredAttachment } from "./Attachment.ts"
import { Citation } from "./ChatTurn.ts"
import { AuthoredMessage } from "./Conversation.ts"
import { RunId } from "./Ids.ts"

/** What a line of the list says of a conversation. */
export const Glance = Schema.Struct({
  /** Your own id of the end user, else their number or id at the provider; null where there is neither. */
  customer: Schema.NullOr(Schema.String),
  /** The first characters of the last message. */
  preview: Schema.NullOr(Schema.String)
})
export type Glance = typeof Glance.Type

/** How far a message has come that went out through a channel; `reason` says why it was not delivered. */
export const MessageDelivery = Schema.Struct({
  status: Schema.Literal("pending", "sent", "delivered", "read", "failed", "cancelled"),
  reason: Schema.NullOr(Schema.String)
})

/** A message and how far it has come. */
export const PostedMessage = Schema.Struct({
  ...AuthoredMessage.fields,
  /** Of the part that has come least far; null where no channel carries the message. */
  delivery: Schema.NullOr(MessageDelivery)
})
export type PostedMessage = typeof PostedMessage.Type

/** A message with what belongs to it. */
export const InboxMessage = Schema.Struct({
  ...PostedMessage.fields,
  citations: Schema.Array(Citation),
  attachments: Schema.Array(StoredAttachment),
  /** The run that wrote it; null where no model did, or its trace was not kept. */
  runId: Schema.NullOr(RunId)
})
export type InboxMessage = typeof InboxMessage.Type
