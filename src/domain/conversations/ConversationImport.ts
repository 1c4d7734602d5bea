/** One conversation of an import: a line of JSON. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { ExternalEndUserId } from "../chat/ChatTurn.ts"
import { MessageRole } from "./Conversation.ts"
import { AgentId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"
import { TimestampInput } from "../TimestampInput.ts"

const Role = MessageRole.annotations({
  message: () => ({ message: 'Expected "user" or "assistant"', override: true })
})

export const ImportedConversation = Schema.Struct({
  /** The caller's own id of the conversation. The same id is imported once. */
  id: optional(trimmed(200)),
  agentId: optional(AgentId),
  externalEndUserId: optional(ExternalEndUserId),
  /** Default: that of the first message. */
  createdAt: optional(TimestampInput),
  messages: Schema.NonEmptyArray(Schema.Struct({ role: Role, content: Text, createdAt: TimestampInput }))
})
export type ImportedConversation = typeof ImportedConversation.Type

/** Why a line was not imported; the first line is 1. */
export const ImportProblem = Schema.Struct({ line: Schema.Int, message: Schema.String })
export type ImportProblem = typeof ImportProblem.Type

export const ImportReport = Schema.Struct({
  /** Number of new conversations, and of their messages. */
  imported: Schema.Int,
  messages: Schema.Int,
  /** Number of lines whose conversation was imported before. */
  repeated: Schema.Int,
  problems: Schema.Array(ImportProblem)
})
export type ImportReport = typeof ImportReport.Type
