/**
 * Recognizes changes that the database refused because what they refer to was deleted meanwhile. The request found it
 * before, so the answer is that of a request which comes later.
 */
import * as Predicate from "effect/Predicate"
import { type NotFound, noSuch } from "../../domain/Errors.ts"

/** What the columns of a reference name, besides the tenant. */
const kinds: Readonly<Record<string, string>> = {
  agent_id: "agent",
  assignee_id: "user",
  budget_id: "budget",
  case_id: "test case",
  channel_id: "channel",
  conversation_id: "conversation",
  end_user_id: "end user",
  endpoint_id: "webhook",
  experiment_id: "experiment",
  group_id: "group",
  invited_by: "user",
  key_id: "key",
  label_id: "label",
  message_id: "message",
  run_id: "run",
  session_hash: "session",
  source_id: "source",
  tool_id: "tool",
  user_id: "user"
}

/** The column in the name of a reference: `tools_tenant_id_agent_id_fkey`. On a sharded server a number follows. */
const reference = /_tenant_id_(?<column>[a-z_]+)_fkey(?:_?\d+)?$/u

/** The error of a failed statement whose row refers to something that does not exist; undefined for other failures. */
export const missingReference = (thrown: unknown): NotFound | undefined => {
  if (!Predicate.isTagged(thrown, "SqlError") || !Predicate.hasProperty(thrown, "cause")) return undefined
  const { cause } = thrown
  if (!Predicate.hasProperty(cause, "code") || cause.code !== "23503") return undefined
  if (!Predicate.hasProperty(cause, "constraint")) return undefined
  const column = reference.exec(String(cause.constraint))?.groups?.["column"] ?? ""
  const kind = kinds[column]
  return kind === undefined ? undefined : noSuch(kind)
}
