/**
 * One HTTP request to a channel's provider, with limits on time and size. Error messages are fixed texts, because an
 * answer may contain parts of the request, and a client's error contains the token.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import { ChannelError, channelRefusal } from "../capabilities/ChannelAdapters.ts"
import { collect } from "../concurrency/Collect.ts"
import * as Json from "../domain/Json.ts"
import { retryAfter } from "../domain/RetryAfter.ts"
import { MiB } from "../domain/Bytes.ts"

/** Maximum size of an answer in bytes. Answers are ids or error messages. */
const maxAnswerBytes = MiB

type AnswerHeaders = Readonly<Record<string, string | undefined>>

/** Converts an answer outside 2xx; `now` is in milliseconds since 1970. */
export type ToChannelError = (
  status: number,
  headers: AnswerHeaders,
  body: string,
  now: number
) => ChannelError

/** The pause that the provider requests with `retry-after`, as a field of a {@link ChannelError}. */
export const retryAfterOf = (
  headers: AnswerHeaders,
  now: number
): { readonly retryAfter?: Duration.Duration } =>
  Option.match(retryAfter(headers, now), {
    onNone: () => ({}),
    onSome: (pause) => ({ retryAfter: pause })
  })

/** Codes of errors that occur before any byte of the request was sent. */
const connectErrorCodes = new Set([
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

const transportError = (error: HttpClientError.HttpClientError): ChannelError =>
  error._tag === "RequestError" && connectErrorCodes.has(codeOf(error.cause))
    ? channelRefusal("The provider could not be reached.", true)
    : new ChannelError({
        reason: "Unknown",
        message: "The connection to the provider broke before its answer.",
        retryable: true
      })

const timedOut = () =>
  new ChannelError({ reason: "Unknown", message: "The provider did not answer in time.", retryable: true })

/** For a 2xx without a usable result. */
export const unreadableAnswer = () =>
  new ChannelError({ reason: "Unknown", message: "The provider's answer cannot be read.", retryable: true })

const readAnswer = (response: HttpClientResponse.HttpClientResponse, toChannelError: ToChannelError) =>
  Effect.gen(function* () {
    const bytes = yield* collect(
      Stream.mapError(response.stream, transportError),
      maxAnswerBytes,
      unreadableAnswer
    )
    const body = new TextDecoder().decode(bytes)
    if (response.status < 200 || response.status >= 300) {
      return yield* toChannelError(response.status, response.headers, body, yield* Clock.currentTimeMillis)
    }
    return yield* Either.mapLeft(Json.parse(body), unreadableAnswer)
  })

/** Sends the request and returns the JSON of a 2xx answer. Fails after `timeout`. */
export const requestJson = (
  http: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
  timeout: Duration.DurationInput,
  toChannelError: ToChannelError
): Effect.Effect<unknown, ChannelError> =>
  http.execute(request).pipe(
    Effect.mapError(transportError),
    Effect.flatMap((response) => readAnswer(response, toChannelError)),
    Effect.timeoutFail({ duration: timeout, onTimeout: timedOut })
  )

export interface NewFile {
  readonly field: string
  readonly name: string
  readonly mimeType: string
  readonly bytes: Uint8Array
}

/** Adds a multipart form to a request. It is encoded here, because a form that the client encodes broke its connection. */
export const multipartBody = (fields: Readonly<Record<string, string>>, file: NewFile) => {
  const form = new FormData()
  for (const [key, value] of Object.entries(fields)) form.append(key, value)
  // A copy, because a Blob cannot be made from shared memory.
  form.append(file.field, new Blob([Uint8Array.from(file.bytes)], { type: file.mimeType }), file.name)
  const response = new Response(form)
  return Effect.map(
    Effect.promise(() => response.arrayBuffer()),
    (body) =>
      HttpClientRequest.bodyUint8Array(new Uint8Array(body), response.headers.get("content-type") ?? "")
  )
}

const tooLarge = () => channelRefusal("The file is too large.")

/** The bytes of a 200 answer. */
export const download = (
  http: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
  maxBytes: number,
  timeout: Duration.DurationInput
): Effect.Effect<Uint8Array, ChannelError> =>
  Effect.gen(function* () {
    const response = yield* Effect.mapError(http.execute(request), transportError)
    const { status } = response
    if (status !== 200) {
      return yield* new ChannelError({
        reason: "Refused",
        message: `The provider answered with status ${status}.`,
        retryable: status >= 500 || status === 429
      })
    }
    return yield* collect(Stream.mapError(response.stream, transportError), maxBytes, tooLarge)
  }).pipe(Effect.timeoutFail({ duration: timeout, onTimeout: timedOut }))
