/**
 * One streamed request to a provider: status, deadlines, events, and an end that is a finish or a failure. The bytes go
 * to a decoder and its parts to the stream, with nothing between them (findings 11).
 */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { ModelError, ModelPart } from "../ModelRuntime.ts"
import * as Failure from "./ProviderFailure.ts"
import { SseLines } from "./SseLines.ts"

/** Reads one answer, event by event. */
export interface Decoder {
  /** True once the answer's finish was among the parts. */
  readonly isFinished: boolean
  /** Adds what the event says to `parts`; a returned error ends the stream after them. */
  readonly read: (data: string, parts: Array<ModelPart>) => ModelError | null
  /** The provider closed the connection. */
  readonly end: (parts: Array<ModelPart>) => ModelError | null
}

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

/** UTF-16 units of one event; the last one of `/responses` repeats the whole answer. */
const maxEvent = 8 * 1024 * 1024
/** Bytes of an error's body that are looked at for its code. */
const maxErrorBody = 16 * 1024
/** How long the end of an error's body, or of the connection behind a finished answer, is waited for. */
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

type Pull<A, E> = Effect.Effect<A, Option.Option<E>>

/** Turns pulls of bytes into pulls of parts. One at a time, like every pull. */
class Reading {
  readonly #pull: Pull<Chunk.Chunk<Uint8Array>, HttpClientError.HttpClientError>
  readonly #decoder: Decoder
  readonly #options: ProviderOptions
  readonly #lines = new SseLines(maxEvent)
  #failure: ModelError | null = null
  #received = false
  #closed = false

  constructor(
    pull: Pull<Chunk.Chunk<Uint8Array>, HttpClientError.HttpClientError>,
    decoder: Decoder,
    options: ProviderOptions
  ) {
    this.#pull = pull
    this.#decoder = decoder
    this.#options = options
  }

  readonly next: Pull<Chunk.Chunk<ModelPart>, ModelError> = Effect.suspend(() => {
    if (this.#failure !== null) return Effect.fail(Option.some(this.#failure))
    if (this.#closed) return Effect.fail(Option.none())
    if (this.#decoder.isFinished) return this.#drained
    return Effect.matchEffect(this.#timed, {
      onSuccess: (bytes) => this.#emit(this.#read(bytes)),
      onFailure: (error) => this.#emit(this.#stop(error))
    })
  })

  get #timed(): Pull<Chunk.Chunk<Uint8Array>, ModelError> {
    const { responseTimeout = defaultTimeout, idleTimeout = responseTimeout } = this.#options
    return this.#pull.pipe(
      Effect.mapError(Option.map((error) => Failure.fromTransport(error, this.#received))),
      Effect.timeoutFail({
        duration: this.#received ? idleTimeout : responseTimeout,
        onTimeout: () => Option.some(this.#received ? Failure.silence() : Failure.noAnswer())
      })
    )
  }

  /** The rest of a finished answer is read and dropped, for a connection that is closed early cannot be used again. */
  get #drained(): Pull<never, ModelError> {
    return this.#pull.pipe(
      Effect.forever,
      Effect.ignore,
      Effect.timeoutOption(patience),
      Effect.zipRight(Effect.fail(Option.none()))
    )
  }

  #read(chunk: Chunk.Chunk<Uint8Array>): Array<ModelPart> {
    const parts: Array<ModelPart> = []
    this.#received = true
    for (const bytes of chunk) {
      const events = this.#lines.push(bytes)
      if (events === null) this.#failure = Failure.malformed("an event is too long")
      for (const data of events ?? []) {
        this.#failure = this.#decoder.read(data, parts)
        if (this.#failure !== null || this.#decoder.isFinished) return parts
      }
      if (this.#failure !== null) return parts
    }
    return parts
  }

  #stop(error: Option.Option<ModelError>): Array<ModelPart> {
    const parts: Array<ModelPart> = []
    this.#closed = true
    if (Option.isSome(error)) this.#failure = error.value
    else {
      // Some providers end with the last line and no blank one; a frame cut in two is a cut answer.
      const rest = this.#lines.end()
      if (rest !== null) this.#decoder.read(rest, parts)
      this.#failure = this.#decoder.isFinished ? null : this.#decoder.end(parts)
    }
    return parts
  }

  #emit(parts: Array<ModelPart>): Pull<Chunk.Chunk<ModelPart>, ModelError> {
    return parts.length === 0 ? this.next : Effect.succeed(Chunk.unsafeFromArray(parts))
  }
}

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
      Effect.flatMap(checked),
      Effect.timeoutFail({ duration: options.responseTimeout ?? defaultTimeout, onTimeout: Failure.noAnswer })
    )
  return Stream.unwrapScoped(
    Effect.map(response, ({ stream }) =>
      Stream.fromPull(Effect.map(Stream.toPull(stream), (pull) => new Reading(pull, decoder(), options).next))
    )
  )
}
