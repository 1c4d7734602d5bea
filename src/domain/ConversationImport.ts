/** One conversation of an import: a line of JSON. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { ExternalEndUserId } from "./ChatTurn.ts"
import { MessageRole } from "./Conversation.ts"
import { AgentId } from "./Ids.ts"
import { Text, trimmed } from "./Text.ts"

const form = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})$/

/** Of a day that there is: the 30th of February would silently become the 1st of March. */
const isTime = (text: string): boolean => {
  const [, day = ""] = form.exec(text) ?? []
  return (
    Option.isSome(DateTime.make(text)) &&
    Option.exists(DateTime.make(`${day}T00:00:00Z`), (begun) => DateTime.formatIsoDateUtc(begun) === day)
  )
}

/** A time with its zone; without one it would mean something else on every machine. */
const Timestamp = Schema.String.pipe(
  Schema.filter(isTime, {
    message: () => "Expected an ISO 8601 time with its zone, like 2024-05-01T09:30:00.000Z"
  }),
  Schema.compose(Schema.DateTimeUtc)
)

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
  createdAt: optional(Timestamp),
  messages: Schema.NonEmptyArray(Schema.Struct({ role: Role, content: Text, createdAt: Timestamp }))
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
