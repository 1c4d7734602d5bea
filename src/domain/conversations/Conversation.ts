/** Conversations and messages. */
import * as Schema from "effect/Schema"
import { MessagingChannel } from "../channels/Channel.ts"
import { AgentId, ConversationId, EndUserId, MessageId, type TenantId } from "../Ids.ts"
import type { SourceScope } from "../knowledge/SourceScope.ts"

export const ConversationState = Schema.Literal("AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE", "CLOSED")
export type ConversationState = typeof ConversationState.Type

/**
 * The origin of a conversation: `api`, `widget`, `test`, or a messaging channel. `/v1/conversations` lists only `api`.
 * `test`: the team tries the agent in the dashboard, and nobody waits for an answer.
 */
export const ConversationChannel = MessagingChannel
export type ConversationChannel = typeof ConversationChannel.Type

/** Channels that are not messaging channels. */
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

/**
 * A message as the team sees it. `author` is null for the end user's messages, and for replies from before it was
 * stored.
 */
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

/** The conversations that a caller may see: those of the tenant, or of one of its agents or channels. */
export interface ConversationScope {
  readonly tenantId: TenantId
  readonly agentId?: AgentId | undefined
  readonly channel?: ConversationChannel | undefined
  /** Only conversations that began under this scope; null or omitted for all. */
  readonly sourceScope?: SourceScope | null
  /** The external id that a visitor's token proves. Conversations of people with another one are hidden then. */
  readonly visitor?: string
}

/** Selects one page of conversations, newest first. */
export interface ConversationFilter {
  readonly limit: number
  /** The id of the last row of the previous page. */
  readonly after?: string | undefined
  readonly endUserId?: EndUserId | undefined
  readonly state?: ConversationState | undefined
}
