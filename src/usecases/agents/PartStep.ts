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

interface ErrorBody {
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** The error with `prefix` before the path of each issue. An error without issues gets one for `prefix`. */
const withPathPrefix = (prefix: FieldPath, { details = {}, message }: ErrorBody) => {
  const { issues = [{ path: [], message }], ...more } = details
  const prefixedIssues = (Array.isArray(issues) ? issues : []).filter(Predicate.isRecord).map((issue) => {
    const path: ReadonlyArray<unknown> = Array.isArray(issue["path"]) ? issue["path"] : []
    return { ...issue, path: [...prefix, ...path] }
  })
  return { message, details: { ...more, issues: prefixedIssues } }
}

/** Puts `prefix` before the paths of a validation error. */
export const prefixValidationError = (prefix: FieldPath) => (error: ValidationError) =>
  new ValidationError(withPathPrefix(prefix, error))

/** Puts `prefix` before the paths of all errors that name fields. */
export const prefixErrors =
  (prefix: FieldPath) =>
  <A>(effect: Effect.Effect<A, PartError>): Effect.Effect<A, PartError> =>
    Effect.catchTags(effect, {
      VALIDATION_ERROR: (error) => prefixValidationError(prefix)(error),
      CONFLICT: (error) => new Conflict(withPathPrefix(prefix, error)),
      LIMIT_EXCEEDED: (error) => new LimitExceeded(withPathPrefix(prefix, error)),
      SERVICE_UNAVAILABLE: (error) => new ServiceUnavailable(withPathPrefix(prefix, error))
    })

export interface PartStep {
  /** Path of the part within its agent in the file. Paths of errors are relative to it. */
  readonly path: FieldPath
  readonly change: FieldChange
  /** Runs before the transaction, and calls providers. */
  readonly prepare: (by: AuditContext) => Effect.Effect<ApplyPart, PartError>
}

/** A step that calls no other service. */
export const partStep = (
  path: FieldPath,
  change: Omit<FieldChange, "field">,
  apply: ApplyPart
): PartStep => ({
  path,
  change: { field: path.join("."), ...change },
  prepare: () => Effect.succeed(apply)
})
