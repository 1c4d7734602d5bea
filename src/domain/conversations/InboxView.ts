/** Conversations as the dashboard's inbox shows them. */
import * as Schema from "effect/Schema"
import { StoredAttachment } from "../channels/Attachment.ts"
import { Citation } from "../chat/ChatTurn.ts"
import { AuthoredMessage } from "./Conversation.ts"
import { RunFailure, RunStatus } from "../chat/AgentRun.ts"
import { RunId } from "../Ids.ts"
import { Teammate } from "./Inbox.ts"
import { Rating } from "../chat/Widget.ts"

/** What a line of the list says of a conversation. */
export const ConversationPreview = Schema.Struct({
  /** Your own id of the end user, else their number or id at the provider; null where there is neither. */
  customer: Schema.NullOr(Schema.String),
  /** The first characters of the last message. */
  preview: Schema.NullOr(Schema.String),
  /** Why the last message, the customer's, got no answer; null where it got one, or waits for it. */
  failure: Schema.NullOr(RunFailure),
  /** Numbers of replies that the customer rated helpful and not helpful. */
  ratings: Schema.Struct({ helpful: Schema.Int, unhelpful: Schema.Int })
})
export type ConversationPreview = typeof ConversationPreview.Type

/** How far a message has come that went out through a channel; `reason` says why it was not delivered. */
const MessageDelivery = Schema.Struct({
  status: Schema.Literal("pending", "sent", "delivered", "read", "failed", "cancelled"),
  reason: Schema.NullOr(Schema.String)
})

/** What the customer thinks of a reply. */
export const MessageFeedback = Schema.Struct({
  rating: Rating,
  comment: Schema.NullOr(Schema.String),
  at: Schema.DateTimeUtc
})

/** A message and how far it has come. */
export const PostedMessage = Schema.Struct({
  ...AuthoredMessage.fields,
  /** Of the part that has come least far; null where no channel carries the message. */
  delivery: Schema.NullOr(MessageDelivery),
  /** Null where the customer has given none. */
  feedback: Schema.NullOr(MessageFeedback)
})
export type PostedMessage = typeof PostedMessage.Type

/** A message with what belongs to it. */
export const InboxMessage = Schema.Struct({
  ...PostedMessage.fields,
  /** Of the messages of the conversation; the first is 1. */
  position: Schema.Int,
  /** The member of the team who wrote it; null where it was not one of them. */
  by: Schema.NullOr(Teammate),
  citations: Schema.Array(Citation),
  attachments: Schema.Array(StoredAttachment),
  /** The run that wrote it, or that failed to answer it; null where there is none, or its trace was not kept. */
  runId: Schema.NullOr(RunId),
  /** Why a message of the customer's got no answer; null where it got one, or waits for it. */
  failure: Schema.NullOr(RunFailure)
})
export type InboxMessage = typeof InboxMessage.Type

/** How the last turn of an agent that has ended went. */
export const LastRun = Schema.Struct({
  runId: RunId,
  status: RunStatus,
  at: Schema.DateTimeUtc,
  /** Null where it did not fail. */
  failure: Schema.NullOr(RunFailure)
})
export type LastRun = typeof LastRun.Type
