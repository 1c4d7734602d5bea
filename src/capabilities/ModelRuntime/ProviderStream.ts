/**
 * One streamed request to a provider: status, deadlines, events, and an end that is a finish or a failure. The bytes go
 * to a decoder and its parts to the stream, with nothing between them (findings 11).
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelError, ModelPart } from "../ModelRuntime.ts"
import { Answer, type Decoder } from "./ProviderAnswer.ts"
import * as Failure from "./ProviderFailure.ts"

export interface ProviderOptions {
  readonly apiKey: Redacted.Redacted
  /** Such as `https://api.openai.com/v1`. */
  readonly baseUrl: string
  /** The model used when an agent names none. */
  readonly defaultModel: string
  /** Tokens of prompt and reply together that fit the model; 128,000 by default. */
  readonly contextWindow?: number
  /** Longest wait for the first byte of an answer; one minute by default. */
  readonly responseTimeout?: Duration.DurationInput
  /** Longest silence inside an answer; by default as long as `responseTimeout`. */
  readonly idleTimeout?: Duration.DurationInput
}

export const defaultContextWindow = 128_000
const defaultTimeout = Duration.minutes(1)

/** Bytes of an error's body that are looked at for its code. */
const maxErrorBody = 16 * 1024
/** How long the end of an error's body is waited for. */
const patience = Duration.seconds(1)

const beginningOf = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string> =>
  response.stream.pipe(
    Stream.mapAccum(0, (seen, bytes): [number, readonly [Uint8Array, number]] => [
      seen + bytes.length,
      [bytes, seen + bytes.length]
    ]),
    Stream.takeUntil(([, seen]) => seen >= maxErrorBody),
    Stream.map(([bytes]) => bytes),
    Stream.decodeText(),
    Stream.mkString,
    Effect.timeoutTo({ duration: patience, onSuccess: (text) => text, onTimeout: () => "" }),
    Effect.catchAll(() => Effect.succeed(""))
  )

const checked = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.gen(function* () {
    if (response.status !== 200) {
      const body = yield* beginningOf(response)
      const now = yield* Clock.currentTimeMillis
      return yield* Failure.fromStatus(response.status, response.headers, body, now)
    }
    if (!/^\s*text\/event-stream\b/i.test(response.headers["content-type"] ?? "")) {
      return yield* Failure.malformed("it is not an event stream")
    }
    return response
  })

/** Posts `body` to `path` and streams what `decoder` reads. Leaving the stream, for whatever reason, aborts the request. */
export const run = (
  client: HttpClient.HttpClient,
  options: ProviderOptions,
  path: string,
  body: object,
  decoder: () => Decoder
): Stream.Stream<ModelPart, ModelError> => {
  const request = HttpClientRequest.post(`${options.baseUrl.replace(/\/+$/, "")}${path}`).pipe(
    HttpClientRequest.bearerToken(options.apiKey),
    HttpClientRequest.accept("text/event-stream"),
    HttpClientRequest.bodyText(JSON.stringify(body), "application/json")
  )
  const response = HttpClient.withScope(client)
    .execute(request)
    .pipe(
      Effect.mapError((error) => Failure.fromTransport(error, false)),
      Effect.flatMap(checked)
    )
  return Stream.unwrapScoped(
    Effect.gen(function* () {
      const { responseTimeout = defaultTimeout, idleTimeout = responseTimeout } = options
      const connection = yield* Effect.acquireRelease(Scope.make(), Scope.close)
      const { stream } = yield* Scope.extend(response, connection).pipe(
        Effect.timeoutFail({ duration: responseTimeout, onTimeout: Failure.noAnswer })
      )
      const deadlines = {
        first: Duration.toMillis(responseTimeout),
        next: Duration.toMillis(idleTimeout)
      }
      const answer = new Answer(yield* Stream.toPull(stream), decoder(), deadlines, yield* Effect.clock)
      yield* Effect.forkScoped(answer.watch(Scope.close(connection, Exit.void)))
      return Stream.fromPull(Effect.succeed(answer.next))
    })
  )
}
