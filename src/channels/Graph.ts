/**
 * Calls of the providers' Graph interface, at the configured address. Errors are words from fixed lists: an answer may hold
 * what was sent, and a client's error holds the token.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { collect } from "../concurrency/Collect.ts"
import * as Json from "../domain/Json.ts"
import { retryAfter } from "../domain/RetryAfter.ts"
import type { JsonObject } from "../domain/Text.ts"

/** One call has to be over by then. */
const callTimeout = Duration.seconds(10)
/** Answers are an id or the words of a refusal. */
const maxAnswerBytes = 1_048_576

/**
 * `Refused`: the provider has surely not taken it; `retryable` says whether it may by itself. `Unknown`: the answer was lost,
 * and that is not known.
 */
export class GraphError extends Schema.TaggedError<GraphError>()("GraphError", {
  reason: Schema.Literal("Refused", "Unknown"),
  message: Schema.String,
  retryable: Schema.Boolean,
  retryAfter: Schema.optionalWith(Schema.DurationFromSelf, { exact: true })
}) {}

export class Graph extends Context.Tag("channels/Graph")<
  Graph,
  {
    /** POSTs to `{base}/{path}` with the token; the answer is the JSON that came with a 2xx. */
    readonly post: (
      path: string,
      token: Redacted.Redacted,
      body: JsonObject
    ) => Effect.Effect<unknown, GraphError>
  }
>() {}

const Failure = Schema.Struct({
  error: Schema.Struct({
    code: Schema.Int,
    error_subcode: Schema.optional(Schema.Unknown),
    is_transient: Schema.optional(Schema.Unknown)
  })
})
const decodeFailure = Schema.decodeUnknownOption(Failure)

/** Codes of the provider that say more than its status. */
const windowClosed = new Set([470, 131047])
const noRecipient = new Set([551, 131021, 131026, 131030])
const noAccess = new Set([3, 10, 102, 190, 131005, 131031])
const transient = new Set([
  1, 2, 4, 17, 32, 341, 613, 1200, 80007, 130429, 131000, 131016, 131048, 131056, 133004
])
/** Of Messenger: outside of the window, and a person that is not there. */
const windowSubcode = 2018278
const recipientSubcode = 2018001

const wordsFor = (code: number, subcode: unknown): string | null => {
  if (windowClosed.has(code) || subcode === windowSubcode)
    return "The provider's window for replies is closed"
  if (noRecipient.has(code) || subcode === recipientSubcode) return "The provider cannot reach the recipient"
  if (noAccess.has(code) || (code >= 200 && code < 300)) return "The provider refused the channel's access"
  return null
}

/** What an answer outside 2xx means. A gateway's page in place of the provider's own words says nothing about the message. */
export const refusal = (
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  now: number
): GraphError => {
  const pause = retryAfter(headers, now)
  const after = Option.isSome(pause) ? { retryAfter: pause.value } : {}
  const failure = Option.getOrNull(Option.flatMap(Either.getRight(Json.parse(body)), decodeFailure))
  if (failure === null) {
    const message = `The provider answered with status ${status}.`
    return status >= 500
      ? new GraphError({ reason: "Unknown", message, retryable: true, ...after })
      : new GraphError({
          reason: "Refused",
          message,
          retryable: status === 429 || status === 408,
          ...after
        })
  }
  const { code, error_subcode: subcode, is_transient } = failure.error
  const words = wordsFor(code, subcode)
  if (words !== null) {
    return new GraphError({ reason: "Refused", message: `${words} (code ${code}).`, retryable: false })
  }
  return new GraphError({
    reason: "Refused",
    message: `The provider refused the message with status ${status} (code ${code}).`,
    retryable: status === 429 || status >= 500 || transient.has(code) || is_transient === true,
    ...after
  })
}

/** Failures before a byte of the request can have arrived. */
const unconnected = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

const codeOf = (cause: unknown, depth = 4): string => {
  if (!Predicate.isRecord(cause) || depth === 0) return ""
  return typeof cause["code"] === "string" ? cause["code"] : codeOf(cause["cause"], depth - 1)
}

export const fromTransport = (error: HttpClientError.HttpClientError): GraphError =>
  error._tag === "RequestError" && unconnected.has(codeOf(error.cause))
    ? new GraphError({ reason: "Refused", message: "The provider could not be reached.", retryable: true })
    : new GraphError({
        reason: "Unknown",
        message: "The connection to the provider broke before its answer.",
        retryable: true
      })

export const silence = () =>
  new GraphError({ reason: "Unknown", message: "The provider did not answer in time.", retryable: true })

/** A 2xx that does not say what became of the message. */
export const unreadable = () =>
  new GraphError({ reason: "Unknown", message: "The provider's answer cannot be read.", retryable: true })

const read = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.gen(function* () {
    const bytes = yield* collect(Stream.mapError(response.stream, fromTransport), maxAnswerBytes, unreadable)
    const body = new TextDecoder().decode(bytes)
    if (response.status < 200 || response.status >= 300) {
      return yield* refusal(response.status, response.headers, body, yield* Clock.currentTimeMillis)
    }
    return yield* Either.mapLeft(Json.parse(body), unreadable)
  })

/** One exchange with the provider, over within `callTimeout`; the answer is the JSON that came with a 2xx. */
export const exchange = (
  http: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
  timeout: Duration.DurationInput
): Effect.Effect<unknown, GraphError> =>
  http
    .execute(request)
    .pipe(
      Effect.mapError(fromTransport),
      Effect.flatMap(read),
      Effect.timeoutFail({ duration: timeout, onTimeout: silence })
    )

/** `base` is the configured address, such as `https://graph.facebook.com/v25.0`. */
export const layerHttp = (base: string): Layer.Layer<Graph, never, HttpClient.HttpClient> =>
  Layer.effect(
    Graph,
    Effect.map(HttpClient.HttpClient, (http) => ({
      post: (path, token, body) =>
        exchange(
          http,
          HttpClientRequest.post(`${base}/${path}`, { acceptJson: true }).pipe(
            HttpClientRequest.bearerToken(token),
            HttpClientRequest.bodyUnsafeJson(body)
          ),
          callTimeout
        ).pipe(Effect.withSpan("Graph.post"))
    }))
  )
