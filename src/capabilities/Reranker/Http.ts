/**
 * Any provider or server with the common `/rerank` API. Request: `{ model, query, documents, top_n }`. Answer:
 * `{ results: [{ index, relevance_score }] }`.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as ProviderMetrics from "../../concurrency/ProviderMetrics.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { Reranker, RerankerError } from "../Reranker.ts"

export interface HttpOptions {
  /** The full address, such as `https://api.example.com/v1/rerank`. */
  readonly url: string
  readonly model: string
  /** Sent as a bearer token. Optional, for a server without authentication. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Time-out of one request; default: 2 seconds. */
  readonly timeout?: Duration.DurationInput
}

const candidateFactor = 4
/** While the server is down, it is not called for this time, so that searches do not wait for further failures. */
const pauseAfterFailure = Duration.seconds(10)

const Results = Schema.Struct({
  results: Schema.Array(Schema.Struct({ index: Schema.NonNegativeInt, relevance_score: Schema.Finite }))
})
type Results = typeof Results.Type

class Failure extends Data.TaggedError("Failure")<{
  readonly message: string
  /** Whether other requests would fail too. The answer to one request is no reason to leave out those of others. */
  readonly isDown: boolean
}> {}

const down = (message: string) => new Failure({ message, isDown: true })
const unusable = (message: string) => new Failure({ message, isDown: false })

const fromStatus = (status: number): Failure =>
  new Failure({
    message: `The reranker answered with status ${status}.`,
    isDown: status === 408 || status === 429 || status >= 500
  })

/** Some models return a probability, others a logit. Logits are mapped to 0..1, which keeps their order. */
const toProbabilities = (scores: ReadonlyArray<number>): ReadonlyArray<number> =>
  scores.every((score) => score >= 0 && score <= 1)
    ? scores
    : scores.map((score) => 1 / (1 + Math.exp(-score)))

/** The score of each of `count` passages, 0 for an omitted one. */
const scoresOf = ({ results }: Results, count: number) => {
  const indexes = new Set(results.map(({ index }) => index))
  if (results.length === 0 || indexes.size < results.length || Math.max(...indexes) >= count) {
    return Effect.fail(unusable("The reranker's answer does not fit the request."))
  }
  const scores: Array<number> = Array.from({ length: count }, () => 0)
  const probabilities = toProbabilities(results.map(({ relevance_score: score }) => score))
  for (const [position, { index }] of results.entries()) scores[index] = probabilities[position] ?? 0
  return Effect.succeed<ReadonlyArray<number>>(scores)
}

const call = { operation: "rerank", provider: "reranker" } as const

const make = ({ apiKey, model, timeout = "2 seconds", url }: HttpOptions) =>
  Effect.map(HttpClient.HttpClient, (http) => {
    let pausedUntil = 0
    ProviderMetrics.register(call)

    const ask = (query: string, documents: ReadonlyArray<string>) => {
      const post = HttpClientRequest.post(url, { acceptJson: true }).pipe(
        apiKey === undefined ? (request) => request : HttpClientRequest.bearerToken(apiKey),
        HttpClientRequest.bodyUnsafeJson({ model, query, documents, top_n: documents.length })
      )
      // The errors contain the request and with it the key, so only the status is passed on.
      return http.execute(post).pipe(
        Effect.flatMap(HttpClientResponse.filterStatusOk),
        Effect.flatMap(HttpClientResponse.schemaBodyJson(Results)),
        Effect.scoped,
        Effect.catchTags({
          RequestError: () => Effect.fail(down("The reranker could not be reached.")),
          ResponseError: ({ reason, response }) =>
            Effect.fail(
              reason === "StatusCode"
                ? fromStatus(response.status)
                : unusable("The reranker's answer cannot be read.")
            ),
          ParseError: () => Effect.fail(unusable("The reranker's answer cannot be read."))
        }),
        Effect.timeoutFail({
          duration: timeout,
          onTimeout: () => down("The reranker did not answer in time.")
        }),
        Effect.flatMap((answer) => scoresOf(answer, documents.length)),
        ProviderMetrics.timed(call, () => "failed")
      )
    }

    const pause = Effect.map(monotonicMillis, (now) => {
      pausedUntil = now + Duration.toMillis(pauseAfterFailure)
    })

    const rerank = Effect.fn("Reranker.rerank")(function* (query: string, passages: ReadonlyArray<string>) {
      if (passages.length === 0) return []
      yield* Effect.annotateCurrentSpan({ passages: passages.length })
      if ((yield* monotonicMillis) < pausedUntil)
        return yield* new RerankerError({ message: "The reranker failed just now." })
      return yield* ask(query, passages).pipe(
        Effect.tapError(({ isDown }) => (isDown ? pause : Effect.void)),
        Effect.mapError(({ message }) => new RerankerError({ message }))
      )
    })

    return Reranker.of({ widen: candidateFactor, rerank })
  })

/** A server that is down or hangs is not called for ten seconds, so that it does not slow every search. */
export const layerHttp = (options: HttpOptions): Layer.Layer<Reranker, never, HttpClient.HttpClient> =>
  Layer.effect(Reranker, make(options))
