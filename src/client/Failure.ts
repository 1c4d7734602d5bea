/** The error of failed calls of the library and of the HTTP client. */
import type { ErrorCode } from "../domain/Errors.ts"

/**
 * Codes beside the documented ones of the API:
 * - `UNREACHABLE`: no answer, or it was interrupted.
 * - `INVALID_RESPONSE`: the answer is not from Spoke, or a reply's object does not fit its whole schema.
 * - `SOURCE_FAILED`: a source that was waited for could not be read; the message says why.
 * - `SOURCE_NOT_SYNCED`: a source that was waited for was created with `autoSync: false` and never synced.
 * - `INVALID_CONFIG`, `DATA_DIRECTORY_IN_USE`, `DATA_DIRECTORY_UNUSABLE`, `DATABASE_UNAVAILABLE`: the library could not
 *   open, or the client could not make a request of its settings.
 * - `CLOSED`: the library was closed.
 */
export type ClientCode =
  | "UNREACHABLE"
  | "INVALID_RESPONSE"
  | "SOURCE_FAILED"
  | "SOURCE_NOT_SYNCED"
  | "INVALID_CONFIG"
  | "DATA_DIRECTORY_IN_USE"
  | "DATA_DIRECTORY_UNUSABLE"
  | "DATABASE_UNAVAILABLE"
  | "CLOSED"

export type SpokeErrorCode = ErrorCode | ClientCode

export interface Failure {
  readonly code: SpokeErrorCode
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>> | undefined
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly cause?: unknown
}

/** A refused or failed call. An aborted call is rejected with the reason of its signal instead. */
export class SpokeError extends Error {
  override readonly name = "SpokeError"
  /** A documented code. Programs should decide by it. */
  readonly code: SpokeErrorCode
  /** As documented for the code: `issues` of a `VALIDATION_ERROR`, `retryAfterSeconds` of a `RATE_LIMITED`. */
  readonly details: Readonly<Record<string, unknown>> | undefined
  /** Status of the HTTP answer, if there was one. */
  readonly status: number | undefined
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined

  constructor({ cause, code, details, message, requestId, status }: Failure) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.details = details
    this.status = status
    this.requestId = requestId
  }
}
