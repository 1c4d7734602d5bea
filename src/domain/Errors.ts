/**
 * Every documented error. The tag is the public code; its HTTP status is defined here only. `message` is public: it
 * says what to fix and never contains a cause, a secret or the caller's input.
 */
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const fields = {
  message: Schema.String,
  details: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Unknown }), { exact: true })
}
const status = (code: number) => ({ [HttpApiSchema.AnnotationStatus]: code })

/** Missing, invalid, expired, inactive or revoked key; no dashboard session. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("UNAUTHORIZED", fields, status(401)) {}
/** Origin blocked, missing permission or role, or the route needs an agent key. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("FORBIDDEN", fields, status(403)) {}
/** {@link Forbidden} for a role that may not do this. */
export const forbiddenForRole = () => new Forbidden({ message: "Your role does not allow this." })
/** The plan lacks public API access. */
export class PlanRestricted extends Schema.TaggedError<PlanRestricted>()(
  "PLAN_RESTRICTED",
  fields,
  status(403)
) {}
/** What is wrong with a field. `path` starts at the outermost field. */
export interface Issue {
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}
/** Body, query or path did not match the route's schema; `details.issues` lists `{path, message}`. */
export class ValidationError extends Schema.TaggedError<ValidationError>()(
  "VALIDATION_ERROR",
  fields,
  status(400)
) {}
/** {@link ValidationError} of one field, with what is expected of it. */
export const invalidField = (
  path: ReadonlyArray<PropertyKey>,
  expected: string,
  message = "The request does not have the expected form."
) => new ValidationError({ message, details: { issues: [{ path, message: expected }] } })
/** The resource does not exist in the caller's scope. */
export class NotFound extends Schema.TaggedError<NotFound>()("NOT_FOUND", fields, status(404)) {}
/** {@link NotFound} for a resource of that kind. */
export const noSuch = (kind: string) => new NotFound({ message: `There is no such ${kind}.` })
/** The value that `lookup` found. Fails with {@link noSuch} if it found none. */
export const orNoSuch =
  (kind: string) =>
  <A, E, R>(lookup: Effect.Effect<Option.Option<A>, E, R>): Effect.Effect<A, E | NotFound, R> =>
    Effect.flatMap(
      lookup,
      Effect.mapError(() => noSuch(kind))
    )
/** The source or monthly ingestion-job entitlement is used up. */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>()(
  "LIMIT_EXCEEDED",
  fields,
  status(429)
) {}
/** The chat turn quota of the period is used up. */
export class TurnLimitExceeded extends Schema.TaggedError<TurnLimitExceeded>()(
  "TURN_LIMIT_EXCEEDED",
  fields,
  status(429)
) {}
/** `conversationId` is unknown for the key's agent. */
export class ConversationNotFound extends Schema.TaggedError<ConversationNotFound>()(
  "CONVERSATION_NOT_FOUND",
  fields,
  status(404)
) {}
/** The conversation is not in state `AI_ACTIVE`. */
export class ConversationNotActive extends Schema.TaggedError<ConversationNotActive>()(
  "CONVERSATION_NOT_ACTIVE",
  fields,
  status(409)
) {}
/** `endUserId` is unknown in the tenant. */
export class EndUserNotFound extends Schema.TaggedError<EndUserNotFound>()(
  "END_USER_NOT_FOUND",
  fields,
  status(404)
) {}
/** Runtime-data forwarding is unavailable. */
export class RuntimeDataUnavailable extends Schema.TaggedError<RuntimeDataUnavailable>()(
  "RUNTIME_DATA_UNAVAILABLE",
  fields,
  status(503)
) {}
/** The chat runtime failed; no internal details. */
export class TurnFailed extends Schema.TaggedError<TurnFailed>()("TURN_FAILED", fields, status(500)) {}
/** The chat runtime took too long. */
export class RuntimeTimeout extends Schema.TaggedError<RuntimeTimeout>()(
  "RUNTIME_TIMEOUT",
  fields,
  status(504)
) {}
/** The route moved to the public API. */
export class Gone extends Schema.TaggedError<Gone>()("GONE", fields, status(410)) {}
/** The selected model cannot read this kind of attachment. */
export class UnsupportedAttachmentType extends Schema.TaggedError<UnsupportedAttachmentType>()(
  "UNSUPPORTED_ATTACHMENT_TYPE",
  fields,
  status(400)
) {}
/** The file's type is not allowed. */
export class UnsupportedType extends Schema.TaggedError<UnsupportedType>()(
  "UNSUPPORTED_TYPE",
  fields,
  status(400)
) {}
/** The file is over the limit of its type. */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FILE_TOO_LARGE", fields, status(400)) {}
/** Unexpected server failure. */
export class InternalError extends Schema.TaggedError<InternalError>()(
  "INTERNAL_ERROR",
  fields,
  status(500)
) {}
/** Messages cannot be paged yet, because older rows do not have their pagination keys yet. */
export class PaginationNotReady extends Schema.TaggedError<PaginationNotReady>()(
  "PAGINATION_NOT_READY",
  fields,
  status(503)
) {}
/** Another lifecycle operation preserves the source's artifact. */
export class ArtifactDeleteConflict extends Schema.TaggedError<ArtifactDeleteConflict>()(
  "ARTIFACT_DELETE_CONFLICT",
  fields,
  status(409)
) {}
/** The source's cleanup cannot be started safely. */
export class ArtifactDeleteUnavailable extends Schema.TaggedError<ArtifactDeleteUnavailable>()(
  "ARTIFACT_DELETE_UNAVAILABLE",
  fields,
  status(503)
) {}
/** A billing webhook's signature is invalid. */
export class InvalidSignature extends Schema.TaggedError<InvalidSignature>()(
  "INVALID_SIGNATURE",
  fields,
  status(400)
) {}
/** A known path was called with a method it does not have; the response carries `allow`. */
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>()(
  "METHOD_NOT_ALLOWED",
  fields,
  status(405)
) {}
/** The request contradicts the state of the resource. */
export class Conflict extends Schema.TaggedError<Conflict>()("CONFLICT", fields, status(409)) {}
/** The body is over the route's limit. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()(
  "PAYLOAD_TOO_LARGE",
  fields,
  status(413)
) {}
/** Too many requests; `details.retryAfterSeconds` is repeated in the `retry-after` header. */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RATE_LIMITED", fields, status(429)) {}
/** Draining, overloaded, or nothing can be queued. */
export class ServiceUnavailable extends Schema.TaggedError<ServiceUnavailable>()(
  "SERVICE_UNAVAILABLE",
  fields,
  status(503)
) {}
/** A secret that the route needs is not configured. */
export class NotConfigured extends Schema.TaggedError<NotConfigured>()(
  "NOT_CONFIGURED",
  fields,
  status(503)
) {}

/** The {@link InternalError} of every defect: its message has no cause. */
export const internalError = () => new InternalError({ message: "Something went wrong on our side." })

/** Every error class by its code, for the boundary, the command line and a test. */
export const errors = {
  UNAUTHORIZED: Unauthorized,
  FORBIDDEN: Forbidden,
  PLAN_RESTRICTED: PlanRestricted,
  VALIDATION_ERROR: ValidationError,
  NOT_FOUND: NotFound,
  LIMIT_EXCEEDED: LimitExceeded,
  TURN_LIMIT_EXCEEDED: TurnLimitExceeded,
  CONVERSATION_NOT_FOUND: ConversationNotFound,
  CONVERSATION_NOT_ACTIVE: ConversationNotActive,
  END_USER_NOT_FOUND: EndUserNotFound,
  RUNTIME_DATA_UNAVAILABLE: RuntimeDataUnavailable,
  TURN_FAILED: TurnFailed,
  RUNTIME_TIMEOUT: RuntimeTimeout,
  GONE: Gone,
  UNSUPPORTED_ATTACHMENT_TYPE: UnsupportedAttachmentType,
  UNSUPPORTED_TYPE: UnsupportedType,
  FILE_TOO_LARGE: FileTooLarge,
  INTERNAL_ERROR: InternalError,
  PAGINATION_NOT_READY: PaginationNotReady,
  ARTIFACT_DELETE_CONFLICT: ArtifactDeleteConflict,
  ARTIFACT_DELETE_UNAVAILABLE: ArtifactDeleteUnavailable,
  INVALID_SIGNATURE: InvalidSignature,
  METHOD_NOT_ALLOWED: MethodNotAllowed,
  CONFLICT: Conflict,
  PAYLOAD_TOO_LARGE: PayloadTooLarge,
  RATE_LIMITED: RateLimited,
  SERVICE_UNAVAILABLE: ServiceUnavailable,
  NOT_CONFIGURED: NotConfigured
} as const

export type ErrorCode = keyof typeof errors
/** Any of the documented failures. */
export type CodedError = InstanceType<(typeof errors)[ErrorCode]>
