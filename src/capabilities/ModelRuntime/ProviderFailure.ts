/**
 * Converts failures of a provider to our own error. A client's error contains the request, and with it the key, so only
 * words from fixed lists are passed on.
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Json from "../../domain/Json.ts"
import { itemsOf } from "../../domain/JsonValue.ts"
import { retryAfter } from "../../domain/RetryAfter.ts"
import type { ProviderProblem } from "../../domain/chat/AgentRun.ts"
import type { StreamingPostError } from "../StreamingPost.ts"
import { ModelError } from "../ModelRuntime.ts"
import { countOf, isObject } from "./WireJson.ts"

/** Error codes that are useful for operators. Any other text of a provider may contain parts of the request. */
const knownCodes = new Set([
  "API_KEY_INVALID",
  "api_error",
  "authentication_error",
  "billing_error",
  "billing_hard_limit_reached",
  "content_filter",
  "context_length_exceeded",
  "insufficient_quota",
  "invalid_api_key",
  "invalid_image",
  "invalid_request_error",
  "model_not_found",
  "not_found_error",
  "overloaded_error",
  "permission_error",
  "rate_limit_error",
  "rate_limit_exceeded",
  "request_too_large",
  "server_error",
  "unsupported_parameter",
  "unsupported_value"
])

/** The error in an answer or an event. Gemini sends it in a list, and others without a member for it. */
export const errorIn = (text: string): unknown => {
  const value: unknown = Either.getOrNull(Json.parsePiece(text))
  const answer: unknown = Array.isArray(value) ? value[0] : value
  if (!isObject(answer)) return undefined
  return answer.object === "error" ? answer : answer.error
}

const knownCode = (error: unknown): string => {
  if (!isObject(error)) return ""
  const reasons = itemsOf(error.details).map((detail) => (isObject(detail) ? detail.reason : undefined))
  const code = [error.code, error.type, ...reasons].find(
    (word) => typeof word === "string" && knownCodes.has(word)
  )
  return typeof code === "string" ? ` (${code})` : ""
}

/** A problem that an operator can fix, if the status and the provider's code identify it. */
const operatorProblem = (status: number, code: string): ProviderProblem | undefined => {
  if (code.includes("quota") || code.includes("billing") || status === 402) return "quota_spent"
  if (status === 401 || status === 403 || /invalid_api_key|API_KEY_INVALID/.test(code)) return "key_refused"
  return status === 404 || code.includes("model_not_found") ? "model_unknown" : undefined
}

/** For an answer with `status`; `body` is the beginning of its body. */
export const fromStatus = (
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  now: number
): ModelError => {
  const code = knownCode(errorIn(body))
  const message = `The provider answered with status ${status}${code}`
  // An exhausted quota is also a 429, and a pause does not help.
  const isQuotaExhausted = code.includes("quota") || code.includes("billing")
  const retryable = (status === 429 && !isQuotaExhausted) || status === 408 || status >= 500
  const problem = operatorProblem(status, code)
  if (!retryable) {
    return new ModelError({
      reason: "Rejected",
      message,
      retryable,
      ...(problem === undefined ? {} : { problem })
    })
  }
  const reason = status === 429 ? "RateLimited" : "Unreachable"
  const pause = retryAfter(headers, now)
  return new ModelError({
    reason,
    message,
    retryable,
    ...(Option.isSome(pause) && { retryAfter: pause.value })
  })
}

/** For a failed connection; `received` is true when a part of the answer had arrived. */
export const fromTransport = ({ reason, code }: StreamingPostError, received: boolean): ModelError => {
  if (reason === "Invalid") {
    return new ModelError({
      reason: "Rejected",
      message: "The request to the provider could not be made; check the provider's address",
      retryable: false
    })
  }
  if (reason === "Late") return received ? stalled() : noAnswer()
  const codeSuffix = code === "" ? "" : ` (${code})`
  return received
    ? new ModelError({
        reason: "Truncated",
        message: `The connection to the provider broke in the middle of its answer${codeSuffix}`,
        retryable: false
      })
    : new ModelError({
        reason: "Unreachable",
        message: `The provider could not be reached${codeSuffix}`,
        retryable: true
      })
}

/** Not retryable although nothing arrived: the provider may still be working, and the turn's time is used up. */
const noAnswer = () =>
  new ModelError({
    reason: "TimedOut",
    message: "The provider did not begin to answer in time",
    retryable: false
  })

const stalled = () =>
  new ModelError({
    reason: "TimedOut",
    message: "The provider stopped sending in the middle of its answer",
    retryable: false
  })

export const malformed = (what: string) =>
  new ModelError({
    reason: "Malformed",
    message: `The provider's answer cannot be read: ${what}`,
    retryable: false
  })

export const truncated = () =>
  new ModelError({
    reason: "Truncated",
    message: "The provider ended its answer without a finish",
    retryable: false
  })

/** Codes of errors within the stream that correspond to a status of 500 or more. */
const outageCodes = /api_error|overloaded_error|server_error/

/** For an error that the provider sent within the stream. Some providers use a status as its code. */
export const fromStreamedError = (error: unknown): ModelError => {
  const code = knownCode(error)
  const status = (isObject(error) ? countOf(error.code) : null) ?? 0
  const message = `The provider broke its answer off with an error${code}`
  const problem = operatorProblem(status, code)
  if (problem !== undefined) return new ModelError({ reason: "Rejected", problem, message, retryable: false })
  if (code.includes("rate_limit") || status === 429)
    return new ModelError({ reason: "RateLimited", message, retryable: true })
  if (outageCodes.test(code) || status === 408 || status >= 500)
    return new ModelError({ reason: "Unreachable", message, retryable: true })
  return new ModelError({ reason: "Truncated", message, retryable: false })
}

/** `error` after a part of the answer: the request must not be sent again, to no provider. */
export const afterParts = (error: ModelError): ModelError => {
  const { message, reason, retryable } = error
  if (!retryable && reason !== "Rejected") return error
  return new ModelError({
    reason: reason === "RateLimited" ? reason : "Truncated",
    message,
    retryable: false
  })
}
