/**
 * Errors in OpenAI's format: our envelope with `type` and `param` added. Clients of OpenAI's API retry 409, 429 and 5xx
 * unless a header forbids it; a turn must not be repeated.
 */
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as ServerResponse from "@effect/platform/HttpServerResponse"
import type { TurnFailure } from "../domain/chat/ChatTurn.ts"
import type { CodedError, ErrorCode, Issue } from "../domain/Errors.ts"
import { failureBody, statusOf } from "./Envelope.ts"

/** OpenAI's addresses and those below them. The router ignores repeated slashes. */
const openAiPath = /^\/+v1\/+(?:chat\/+completions|models)(?:\/|$)/u

/** True when responses of `path` have OpenAI's format. */
export const isOpenAiPath = (path: string): boolean => openAiPath.test(path)

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error"
}

const typeOf = (code: ErrorCode): string => {
  const status = statusOf(code)
  return types[status] ?? (status >= 500 ? "server_error" : "invalid_request_error")
}

/** Codes after which the same request may be sent again at once, or after `retry-after`. */
const repeatable: ReadonlySet<ErrorCode> = new Set(["RATE_LIMITED", "SERVICE_UNAVAILABLE"])

const isIssue = (value: unknown): value is Issue =>
  typeof value === "object" &&
  value !== null &&
  "path" in value &&
  Array.isArray(value.path) &&
  "message" in value

/** Clients show only the message, so the invalid parameters are named in it. */
const messageAndParam = ({ details, message }: CodedError) => {
  const issues = Array.isArray(details?.["issues"]) ? details["issues"].filter(isIssue) : []
  const [first] = issues
  const param = details?.["param"]
  if (first === undefined) return { message, param: typeof param === "string" ? param : null }
  const issueLines = issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`)
  return { message: [message, ...issueLines].join(" "), param: first.path.join(".") }
}

/** The response for `error`. */
export const errorResponse = (
  error: CodedError,
  requestId: string,
  headers: Readonly<Record<string, string>>
): HttpServerResponse.HttpServerResponse => {
  const { error: common, meta } = failureBody(error, requestId)
  return ServerResponse.unsafeJson(
    { error: { ...common, ...messageAndParam(error), type: typeOf(error._tag) }, meta },
    {
      status: statusOf(error._tag),
      headers: { "x-should-retry": String(repeatable.has(error._tag)), ...headers }
    }
  )
}

/** The OpenAPI description of `response`, for errors with one of `codes`. */
export const describeErrors = (
  response: Readonly<Record<string, unknown>>,
  codes: ReadonlyArray<string>
): Readonly<Record<string, unknown>> => {
  const text = { type: "string" }
  const error = {
    type: "object",
    required: ["message", "type", "param", "code"],
    properties: {
      message: text,
      type: {
        type: "string",
        enum: [...new Set(Object.values(types)), "server_error", "invalid_request_error"]
      },
      param: { anyOf: [text, { type: "null" }] },
      code: { type: "string", enum: [...new Set(codes)] },
      details: { type: "object" }
    },
    additionalProperties: false
  }
  const meta = {
    type: "object",
    required: ["requestId"],
    properties: { requestId: text },
    additionalProperties: false
  }
  const schema = {
    type: "object",
    required: ["error", "meta"],
    properties: { error, meta },
    additionalProperties: false
  }
  return { ...response, content: { "application/json": { schema } } }
}

const messages: Readonly<Record<TurnFailure["_tag"], string>> = {
  TURN_FAILED: "The chat runtime failed. The turn was not completed.",
  RUNTIME_TIMEOUT: "The chat runtime took too long."
}

/** The error of a stream that has already started. */
export const streamError = (code: TurnFailure["_tag"]) => ({
  message: messages[code],
  type: typeOf(code),
  param: null,
  code
})
