/** One conversation of an import: a line of JSON. */
import * as Schema from "effect/Schema"
import { ExternalEndUserId } from "../chat/ChatTurn.ts"
import { MessageRole } from "./Conversation.ts"
import { AgentId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"
import { TimestampInput } from "../TimestampInput.ts"

const Role = MessageRole.annotations({
  message: () => ({ message: 'Expected "user" or "assistant"', override: true })
})

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const ImportedConversation = Schema.Struct({
  /** The caller's own name for the conversation: the same one is imported once. */
  id: optional(trimmed(200)),
  agentId: optional(AgentId),
  externalEndUserId: optional(ExternalEndUserId),
  /** That of the first message when it is left out. */
  createdAt: optional(TimestampInput),
  messages: Schema.NonEmptyArray(Schema.Struct({ role: Role, content: Text, createdAt: TimestampInput }))
})
export type ImportedConversation = typeof ImportedConversation.Type

/** Why a line was left out; the first line is 1. */
export const ImportProblem = Schema.Struct({ line: Schema.Int, message: Schema.String })
export type ImportProblem = typeof ImportProblem.Type

export const ImportReport = Schema.Struct({
  /** Conversations that are new, and their messages. */
  imported: Schema.Int,
  messages: Schema.Int,
  /** Lines whose conversation had been imported before. */
  repeated: Schema.Int,
  problems: Schema.Array(ImportProblem)
})
export type ImportReport = typeof ImportReport.Type
