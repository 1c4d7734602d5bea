/** Embeddings of any provider with OpenAI's `POST /embeddings`. */
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { retryAfter } from "../../domain/RetryAfter.ts"
import * as Batcher from "../../concurrency/Batcher.ts"
import * as ProviderMetrics from "../../concurrency/ProviderMetrics.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { Embedder, EmbedderError } from "../Embedder.ts"
import { StreamingPost } from "../StreamingPost.ts"
import { ProviderBackoff, type ProviderBackoffService } from "../ProviderBackoff.ts"
import {
  type EmbeddingRequest,
  type Embedding,
  makeRequestEmbeddings,
  type WireFailure
} from "./OpenAiWire.ts"
import { toUnit } from "./UnitVector.ts"

export interface OpenAiOptions {
  readonly apiKey: Redacted.Redacted
  /** For example `https://api.openai.com/v1`. */
  readonly baseUrl: string
  readonly model: string
  /** The provider's name in the configuration; default: openai. */
  readonly provider?: string
  /** Default: the model's own dimensions. */
  readonly dimensions?: number
  /** Time-out of one request; default: 30 seconds. */
  readonly timeout?: Duration.DurationInput
  /** Maximum number of concurrent batches of documents; default: 4. Queries do not wait for them. */
  readonly concurrency?: number
}

/** Default dimensions of OpenAI's models. */
const nativeDimensions: Readonly<Record<string, number>> = {
  "text-embedding-3-small": 1_536,
  "text-embedding-3-large": 3_072,
  "text-embedding-ada-002": 1_536
}
/** Providers limit a batch to 300,000 tokens, and a chunk of 1,600 characters may have 2,000. */
const maxBatch = 128
/** The models accept 8,192 tokens, and one character may be more than one token. */
const maxInputCharacters = 6_000
/** A longer pause is left to the job queue, which blocks no connection and no thread meanwhile. */
const maxRetryDelay = Duration.seconds(20)
/** Maximum time that a query waits for the end of a pause. After it, only words are used. */
const maxQueryWait = Duration.seconds(1)
const maxAttempts = 4
/** Maximum number of queries in one request. */
const maxQueriesPerRequest = 16

const failure = (
  message: string,
  retryable: boolean,
  pause: Option.Option<Duration.Duration> = Option.none()
) => new EmbedderError({ message, retryable, ...(Option.isSome(pause) && { retryAfter: pause.value }) })

/** The reason may be one of the texts. */
const refusal = (message: string) => new EmbedderError({ message, retryable: false, dependsOnInput: true })

const tooMany = () => failure("Too many texts wait for the embedding provider.", true)

const reasons: Readonly<Record<number, string>> = {
  400: "The embedding provider refuses the text or the settings of the model",
  413: "The embedding provider refuses the text, which is too long for it",
  422: "The embedding provider refuses the text or the settings of the model",
  401: "The embedding provider refuses the key",
  403: "The embedding provider refuses the key",
  404: "The embedding provider does not know the model",
  429: "The embedding provider's rate limit is reached"
}

/** Statuses whose reason may be the content of a text, or the length of all texts. */
const inputStatuses: ReadonlyArray<number> = [400, 413, 422]

const fromStatus = (
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  now: number
): EmbedderError => {
  const retryable = status === 408 || status === 429 || status >= 500
  const message = `${reasons[status] ?? "The embedding provider answered with an error"} (status ${status}).`
  if (inputStatuses.includes(status)) return refusal(message)
  return failure(message, retryable, retryable ? retryAfter(headers, now) : Option.none())
}

const fromWire = (wireFailure: WireFailure): EmbedderError => {
  if (wireFailure.kind === "status")
    return fromStatus(wireFailure.status, wireFailure.headers, wireFailure.now)
  if (wireFailure.kind === "unreachable") return failure("The embedding provider could not be reached.", true)
  const message = "The embedding provider's answer cannot be read."
  return wireFailure.kind === "broken" ? failure(message, true) : refusal(message)
}

/** Unit vectors in the order of the texts. The answer may have another order. */
const toVectors = (
  data: ReadonlyArray<Embedding>,
  count: number,
  dimensions: number
): Effect.Effect<ReadonlyArray<Float32Array>, EmbedderError> => {
  const byIndex = new Map(data.map(({ index, embedding }) => [index, embedding]))
  const vectors: Array<Float32Array> = []
  for (let index = 0; index < count; index++) {
    const embedding = byIndex.get(index)
    if (embedding === undefined)
      return Effect.fail(failure("The embedding provider returned too few vectors.", true))
    if (embedding.length !== dimensions) {
      const message = `The embedding model gives ${embedding.length} dimensions, not ${dimensions}; set SPOKE_EMBEDDING_DIMENSIONS to that number.`
      return Effect.fail(failure(message, false))
    }
    const vector = toUnit(embedding)
    if (vector === null) return Effect.fail(refusal("The embedding provider sent no vector."))
    vectors.push(vector)
  }
  return Effect.succeed(vectors)
}

const toInput = (text: string): string =>
  text === "" ? " " : text.slice(0, maxInputCharacters).toWellFormed()

const retries = Schedule.exponential("500 millis").pipe(
  Schedule.jittered,
  Schedule.intersect(Schedule.recurs(maxAttempts - 1)),
  Schedule.whileInput(
    ({ retryable, retryAfter: pause }: EmbedderError) =>
      retryable && (pause === undefined || Duration.lessThanOrEqualTo(pause, maxRetryDelay))
  )
)

const outcomeOf = ({ status }: WireFailure): ProviderMetrics.Outcome =>
  status === 429 ? "rate_limited" : status === 408 ? "timed_out" : "failed"

/** Named by OpenTelemetry's conventions for generative AI; without the texts. */
const withRequestSpan =
  ({ dimensions, model }: EmbeddingRequest, { provider = "openai" }: OpenAiOptions) =>
  <A, E>(self: Effect.Effect<A, E>) =>
    Effect.flatMap(FiberRef.get(FiberRef.currentTracerEnabled), (isTraced) =>
      isTraced
        ? Effect.withSpan(self, `embeddings ${model}`, {
            kind: "client",
            captureStackTrace: false,
            attributes: {
              "gen_ai.operation.name": "embeddings",
              "gen_ai.provider.name": provider,
              "gen_ai.request.model": model,
              ...(dimensions === undefined ? {} : { "gen_ai.embeddings.dimension.count": dimensions })
            }
          })
        : self
    )

type Ask = (asked: EmbeddingRequest) => Effect.Effect<ReadonlyArray<Embedding>, WireFailure>

/** Statuses of servers that do not support a parameter. */
const parameterStatuses: ReadonlyArray<number> = [400, 422]

/**
 * Adds optional parameters to requests. If the first request is refused, they are left out from then on: servers of
 * other models may refuse `dimensions`, and servers without base64 vectors may refuse the encoding.
 */
const withOptionalParameters = ({ model }: OpenAiOptions, dimensions: number) => {
  let sendsDimensions = nativeDimensions[model] !== dimensions
  let asksForBase64 = true
  let hasSucceeded = false
  return (send: Ask, input: ReadonlyArray<string>) => {
    const ask = Effect.suspend(() =>
      send({
        model,
        input,
        encoding_format: asksForBase64 ? "base64" : "float",
        ...(sendsDimensions && { dimensions })
      })
    )
    const askWithoutParameters = Effect.suspend(() => {
      const before = { sendsDimensions, asksForBase64 }
      // Once a request has succeeded, its parameters are no reason for a refusal.
      sendsDimensions = sendsDimensions && (nativeDimensions[model] !== undefined || hasSucceeded)
      asksForBase64 = asksForBase64 && hasSucceeded
      const isUnchanged = sendsDimensions === before.sendsDimensions && asksForBase64 === before.asksForBase64
      return Effect.onExit(ask, (exit) =>
        Effect.sync(() => {
          // The parameters were not the reason, or the reason is unknown.
          if (Exit.isFailure(exit)) ({ sendsDimensions, asksForBase64 } = before)
        })
      ).pipe(Effect.when(() => !isUnchanged))
    })
    return Effect.catchAll(ask, (error) =>
      parameterStatuses.includes(error.status)
        ? Effect.flatMap(
            askWithoutParameters,
            Option.match({ onNone: () => Effect.fail(error), onSome: Effect.succeed })
          )
        : Effect.fail(error)
    ).pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          hasSucceeded = true
        })
      )
    )
  }
}

const pauses = Metric.counter("spoke_provider_pauses_total", {
  description: "Pauses that the embedding provider asked for",
  incremental: true
})

/**
 * A pause that a provider requests applies to all callers in every process. Batches of documents read the shared state
 * first. A query, for which a user waits, uses only what this process knows.
 */
const makePause = (provider: string, shared: ProviderBackoffService) => {
  let until = 0
  const extend = (millis: number) =>
    Effect.map(monotonicMillis, (now) => {
      if (millis > 0) until = Math.max(until, now + millis)
    })
  /** Reads the pause that other processes have recorded. */
  const readShared = Effect.flatMap(shared.left(provider), (left) => extend(Duration.toMillis(left)))
  /** Remaining milliseconds of the pause. */
  const left = Effect.map(monotonicMillis, (now) => Math.max(0, until - now))
  const begin = ({ retryAfter: pause }: EmbedderError) =>
    pause === undefined
      ? Effect.void
      : extend(Duration.toMillis(pause)).pipe(
          Effect.zipRight(Metric.increment(pauses)),
          Effect.zipRight(shared.begin(provider, pause))
        )
  /** Waits for the end of the pause, or fails when it is longer than `limit`. */
  const awaitPause = (limit: Duration.Duration) =>
    Effect.flatMap(left, (millis) =>
      millis > Duration.toMillis(limit)
        ? Effect.fail(
            failure("The embedding provider asked for a pause.", true, Option.some(Duration.millis(millis)))
          )
        : millis > 0
          ? Effect.sleep(millis)
          : Effect.void
    )
  return { begin, awaitPause, readShared }
}

const make = (options: OpenAiOptions) =>
  Effect.gen(function* () {
    const { model, timeout = "30 seconds", concurrency = 4 } = options
    const dimensions = options.dimensions ?? nativeDimensions[model] ?? 1_536
    const call = { operation: "embeddings", provider: options.provider ?? "openai" } as const
    ProviderMetrics.register(call)
    pauses.unsafeUpdate(0, [])
    const requestEmbeddings = makeRequestEmbeddings(
      yield* StreamingPost,
      options.baseUrl,
      options.apiKey,
      Duration.decode(timeout)
    )
    const send: Ask = (asked) =>
      requestEmbeddings(asked).pipe(ProviderMetrics.timed(call, outcomeOf), withRequestSpan(asked, options))
    const ask = withOptionalParameters(options, dimensions)
    const pause = makePause(options.baseUrl, yield* ProviderBackoff)
    const batches = new FairLimiter({ name: "embedding-batches", permits: concurrency, maxWaiting: 1_024 })

    const embed = (texts: ReadonlyArray<string>, limit: Duration.Duration) => {
      const input = texts.map(toInput)
      if (input.length === 0) return Effect.succeed<ReadonlyArray<Float32Array>>([])
      return pause.awaitPause(limit).pipe(
        Effect.zipRight(Effect.mapError(ask(send, input), fromWire)),
        Effect.tapError(pause.begin),
        Effect.flatMap((data) => toVectors(data, texts.length, dimensions))
      )
    }

    const embedOne = (text: string) =>
      embed([text], maxQueryWait).pipe(
        Effect.flatMap(Arr.head),
        Effect.catchTag("NoSuchElementException", () =>
          Effect.fail(failure("The embedding provider returned too few vectors.", true))
        )
      )

    /** The provider may refuse a batch because of one text. Each text is then sent alone. */
    const embedEach = (texts: ReadonlyArray<string>) =>
      embed(texts, maxQueryWait).pipe(
        Effect.map(Arr.map((vector) => Exit.succeed(vector))),
        Effect.catchIf(
          ({ dependsOnInput }) => dependsOnInput === true && texts.length > 1,
          () =>
            Effect.forEach(texts, (text) => Effect.exit(embedOne(text)), {
              concurrency: maxQueriesPerRequest
            })
        )
      )
    const embedInBatch = yield* Batcher.makeBatcher(maxQueriesPerRequest, embedEach)

    // The caller limits the time of a query. The connection limits the time of each part of the answer.
    const inTime = Effect.timeoutFail({
      duration: Duration.sum(maxRetryDelay, timeout),
      onTimeout: () => failure("The embedding provider did not answer in time.", true)
    })

    return Embedder.of({
      profile: `${model}/${dimensions}`,
      dimensions,
      lexicalWeight: () => 0.5,
      minScore: 0.35,
      maxBatch,
      queryTimeout: "2 seconds",
      embedQuery: (text) => Effect.flatten(embedInBatch(text)).pipe(CheapSpans.span("Embedder.embedQuery")),
      embedAll: (texts) =>
        Effect.zipRight(pause.readShared, inTime(embed(texts, maxRetryDelay))).pipe(
          withSharedPermit(batches, tooMany),
          Effect.retry(retries),
          Effect.withSpan("Embedder.embedAll", { attributes: { texts: texts.length } })
        )
    })
  })

/**
 * Concurrent queries are sent in one request. Respects `retry-after` for all batches, and retries transient failures.
 */
export const layerOpenAi = (options: OpenAiOptions) => Layer.scoped(Embedder, make(options))
