/** Conversations and messages. */
import * as Schema from "effect/Schema"
import { MessagingChannel } from "../channels/Channel.ts"
import { AgentId, ConversationId, EndUserId, MessageId, type TenantId } from "../Ids.ts"
import type { SourceScope } from "../knowledge/SourceScope.ts"

export const ConversationState = Schema.Literal("AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE", "CLOSED")
export type ConversationState = typeof ConversationState.Type

/**
 * Where a conversation came in: `api`, `widget`, `test`, or a messaging channel; `/v1/conversations` lists `api` alone. `test`:
 * the team tries the agent in the dashboard, and no one waits for an answer there.
 */
export const ConversationChannel = MessagingChannel
export type ConversationChannel = typeof ConversationChannel.Type

/** Those that are no messaging channels. */
export const ownChannels: ReadonlyArray<ConversationChannel> = ["api", "widget", "test"]

export const MessageRole = Schema.Literal("user", "assistant")
export type MessageRole = typeof MessageRole.Type

export class Message extends Schema.Class<Message>("Message")({
  id: MessageId,
  role: MessageRole,
  content: Schema.String,
  createdAt: Schema.DateTimeUtc
}) {}

/** The author of a message to the end user: the model, a member of the team, or the service itself. */
export const MessageAuthor = Schema.Literal("agent", "human", "system")
export type MessageAuthor = typeof MessageAuthor.Type

/** A message as the team sees it; `author` is null for the end user's own, and for replies from before it was kept. */
export const AuthoredMessage = Schema.Struct({ ...Message.fields, author: Schema.NullOr(MessageAuthor) })
export type AuthoredMessage = typeof AuthoredMessage.Type

export class Conversation extends Schema.Class<Conversation>("Conversation")({
  id: ConversationId,
  agentId: AgentId,
  endUserId: EndUserId,
  messageCount: Schema.Int,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
}) {}

/** Which conversations a caller may see: those of the tenant, or of one agent or channel of it. */
export interface ConversationScope {
  readonly tenantId: TenantId
  readonly agentId?: AgentId | undefined
  readonly channel?: ConversationChannel | undefined
  /** Only those that began under this scope; null or left out: all. */
  readonly sourceScope?: SourceScope | null
}

/** One page of them, newest first. */
export interface ConversationFilter {
  readonly limit: number
  /** The id of the last row of the page before. */
  readonly after?: string | undefined
  readonly endUserId?: EndUserId | undefined
  readonly state?: ConversationState | undefined
}
