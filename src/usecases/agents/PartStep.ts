/** A planned change of one part of an agent in a configuration file. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { FieldChange } from "../../domain/agents/Configuration.ts"
import * as Predicate from "effect/Predicate"
import {
  type ArtifactDeleteConflict,
  type ArtifactDeleteUnavailable,
  Conflict,
  LimitExceeded,
  type NotFound,
  ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import type { AuditContext } from "../accounts/AuditTrail.ts"

export type PartError =
  | NotFound
  | Conflict
  | ValidationError
  | ServiceUnavailable
  | LimitExceeded
  | ArtifactDeleteConflict
  | ArtifactDeleteUnavailable

/** Makes the change in the caller's transaction. */
export type ApplyPart = (agent: AgentScope) => Effect.Effect<void, PartError>

/** A path of field names, outermost first. */
export type FieldPath = ReadonlyArray<string>

interface Described {
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** The error with `place` before the path of each issue. An error without issues gets one for `place`. */
const withPlace = (place: FieldPath, { details = {}, message }: Described) => {
  const { issues = [{ path: [], message }], ...more } = details
  const placedIssues = (Array.isArray(issues) ? issues : []).filter(Predicate.isRecord).map((issue) => {
    const path: ReadonlyArray<unknown> = Array.isArray(issue["path"]) ? issue["path"] : []
    return { ...issue, path: [...place, ...path] }
  })
  return { message, details: { ...more, issues: placedIssues } }
}

/** Adds `place` to a validation error. */
export const invalidAt = (place: FieldPath) => (error: ValidationError) =>
  new ValidationError(withPlace(place, error))

/** Adds `place` to the errors of its preparation and its change. */
export const failingAt =
  (place: FieldPath) =>
  <A>(made: Effect.Effect<A, PartError>): Effect.Effect<A, PartError> =>
    Effect.catchTags(made, {
      VALIDATION_ERROR: (error) => invalidAt(place)(error),
      CONFLICT: (error) => new Conflict(withPlace(place, error)),
      LIMIT_EXCEEDED: (error) => new LimitExceeded(withPlace(place, error)),
      SERVICE_UNAVAILABLE: (error) => new ServiceUnavailable(withPlace(place, error))
    })

export interface PartStep {
  /** Where the file configures it, within its agent. Errors of the step name fields within it. */
  readonly place: FieldPath
  readonly change: FieldChange
  /** Runs before the transaction and makes the outside calls. `by` is who requested the change. */
  readonly prepare: (by: AuditContext) => Effect.Effect<ApplyPart, PartError>
}

/** A step that calls no other service. */
export const partStep = (
  place: FieldPath,
  change: Omit<FieldChange, "field">,
  take: ApplyPart
): PartStep => ({
  place,
  change: { field: place.join("."), ...change },
  prepare: () => Effect.succeed(take)
})
