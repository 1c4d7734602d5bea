/** Conversations as the dashboard's inbox shows them. */
import * as Schema from "effect/Schema"
import { StoredAttachment } from "../channels/Attachment.ts"
import { Citation } from "../chat/ChatTurn.ts"
import { AuthoredMessage } from "./Conversation.ts"
import { RunFailure, RunStatus } from "../chat/AgentRun.ts"
import { RunId } from "../Ids.ts"
import { Teammate } from "./Inbox.ts"
import { Rating } from "../chat/Widget.ts"

/** One line of the list of conversations. */
export const ConversationPreview = Schema.Struct({
  /** Your own id of the end user, else their number or id at the provider; null if there is neither. */
  customer: Schema.NullOr(Schema.String),
  /** The first characters of the last message. */
  preview: Schema.NullOr(Schema.String),
  /** Why the customer's last message got no answer; null if it got one, or waits for it. */
  failure: Schema.NullOr(RunFailure),
  /** Numbers of replies that the customer rated helpful and not helpful. */
  ratings: Schema.Struct({ helpful: Schema.Int, unhelpful: Schema.Int })
})
export type ConversationPreview = typeof ConversationPreview.Type

/** Delivery of a message that was sent through a channel; `reason` is why it was not delivered. */
const MessageDelivery = Schema.Struct({
  status: Schema.Literal("pending", "sent", "delivered", "read", "failed", "cancelled"),
  reason: Schema.NullOr(Schema.String)
})

/** The customer's rating of a reply. */
export const MessageFeedback = Schema.Struct({
  rating: Rating,
  comment: Schema.NullOr(Schema.String),
  at: Schema.DateTimeUtc
})

/** A message with its delivery. */
export const PostedMessage = Schema.Struct({
  ...AuthoredMessage.fields,
  /** Delivery of the part with the earliest status; null if the message is not sent through a channel. */
  delivery: Schema.NullOr(MessageDelivery),
  /** Null if the customer has given none. */
  feedback: Schema.NullOr(MessageFeedback)
})
export type PostedMessage = typeof PostedMessage.Type

/** A message with its related data. */
export const InboxMessage = Schema.Struct({
  ...PostedMessage.fields,
  /** Position of the message in the conversation; the first is 1. */
  position: Schema.Int,
  /** The team member who wrote it; null if nobody of the team did. */
  by: Schema.NullOr(Teammate),
  citations: Schema.Array(Citation),
  attachments: Schema.Array(StoredAttachment),
  /** The run that wrote it, or that failed to answer it. Null if there is none, or its trace was not stored. */
  runId: Schema.NullOr(RunId),
  /** Why a message of the customer got no answer; null if it got one, or waits for it. */
  failure: Schema.NullOr(RunFailure)
})
export type InboxMessage = typeof InboxMessage.Type

/** The result of an agent's last ended turn. */
export const LastRun = Schema.Struct({
  runId: RunId,
  status: RunStatus,
  at: Schema.DateTimeUtc,
  /** Null if it did not fail. */
  failure: Schema.NullOr(RunFailure)
})
export type LastRun = typeof LastRun.Type
