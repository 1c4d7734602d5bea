/** A channel, model or tool of an agent that fails now. */
import * as Schema from "effect/Schema"
import { AgentId } from "../Ids.ts"

/**
 * `channel`: the provider of an account fails calls. `model`: the last turn had no reply. `tool`: the last call of a
 * tool failed.
 */
const AgentProblemKind = Schema.Literal("channel", "model", "tool")

export const AgentProblem = Schema.Struct({
  agentId: AgentId,
  agentName: Schema.String,
  kind: AgentProblemKind,
  /** The id of the channel, or the name of the tool; null for the model. */
  target: Schema.NullOr(Schema.String),
  /** The channel and its account, as `whatsapp:106540352242922`, or the name of the tool; null for the model. */
  name: Schema.NullOr(Schema.String),
  /** Since when every call has failed, as far as the last turns show. */
  since: Schema.DateTimeUtc,
  /** The provider's reason, or the code of the failure; null if it is not known. */
  reason: Schema.NullOr(Schema.String)
})
export type AgentProblem = typeof AgentProblem.Type
