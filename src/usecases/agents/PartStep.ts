/** A planned change of one part of an agent, as a file of agents says it. */
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

/** Makes the change, within the caller's transaction. */
export type TakePart = (agent: AgentScope) => Effect.Effect<void, PartError>

export interface PartStep {
  readonly change: FieldChange
  /** Before the transaction: whatever has to be asked of others. `by` is who the change is made for. */
  readonly prepare: (by: By) => Effect.Effect<TakePart, PartError>
}

/** A step that asks nobody. */
export const partStep = (change: FieldChange, take: TakePart): PartStep => ({
  change,
  prepare: () => Effect.succeed(take)
})
