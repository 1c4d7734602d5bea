/** A planned change of one part of an agent in a configuration file. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { FieldChange } from "../../domain/agents/Configuration.ts"
import type {
  ArtifactDeleteConflict,
  ArtifactDeleteUnavailable,
  Conflict,
  LimitExceeded,
  NotFound,
  ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import type { By } from "../accounts/AuditTrail.ts"

export type PartError =
  | NotFound
  | Conflict
  | ValidationError
  | ServiceUnavailable
  | LimitExceeded
  | ArtifactDeleteConflict
  | ArtifactDeleteUnavailable

/** Makes the change in the caller's transaction. */
export type TakePart = (agent: AgentScope) => Effect.Effect<void, PartError>

export interface PartStep {
  readonly change: FieldChange
  /** Runs before the transaction and makes the outside calls. `by` is who requested the change. */
  readonly prepare: (by: By) => Effect.Effect<TakePart, PartError>
}

/** A step without outside calls. */
export const partStep = (change: FieldChange, take: TakePart): PartStep => ({
  change,
  prepare: () => Effect.succeed(take)
})
