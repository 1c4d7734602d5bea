/** Entries of the audit trail. */
import * as Schema from "effect/Schema"

/** The actor: an API key, a dashboard user, an access token, the operator or the service itself, by id. */
export const Actor = Schema.Struct({
  type: Schema.Literal("key", "user", "token", "operator", "service"),
  id: Schema.String
})
export type Actor = typeof Actor.Type

/** An entry as it is listed. */
export const AuditEntry = Schema.Struct({
  id: Schema.String,
  at: Schema.DateTimeUtc,
  actor: Actor,
  /** The name of the actor today: an e-mail address, or the name of a key or token. Null if it has none or was deleted. */
  actorName: Schema.NullOr(Schema.String),
  /** The action, as `noun.verb`: `agent_run.read`. */
  action: Schema.String,
  /** Id of the object of the action. */
  target: Schema.String,
  /** The name of the object today. Null if it has none or was deleted. */
  targetName: Schema.NullOr(Schema.String),
  requestId: Schema.String
})
export type AuditEntry = typeof AuditEntry.Type
