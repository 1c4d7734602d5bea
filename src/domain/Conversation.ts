/** Conversations and messages (specification 2.7, contract 4). */
import * as Schema from "effect/Schema"
import { AgentId, ConversationId, EndUserId, MessageId } from "./Ids.ts"

export const ConversationState = Schema.Literal("AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE", "CLOSED")
export type ConversationState = typeof ConversationState.Type

/** Where a conversation came in; `/v1/conversations` lists `api` alone. */
export const ConversationChannel = Schema.Literal("api", "widget", "whatsapp", "messenger")
export type ConversationChannel = typeof ConversationChannel.Type

export const MessageRole = Schema.Literal("user", "assistant")
export type MessageRole = typeof MessageRole.Type

export class Message extends Schema.Class<Message>("Message")({
  id: MessageId,
  role: MessageRole,
  content: Schema.String,
  createdAt: Schema.DateTimeUtc
}) {}

export class Conversation extends Schema.Class<Conversation>("Conversation")({
  id: ConversationId,
  agentId: AgentId,
  endUserId: EndUserId,
  messageCount: Schema.Int,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
}) {}
