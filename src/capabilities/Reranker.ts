/**
 * Reorders search results with a model that reads query and passage together. It changes only the order: `score` and
 * `minScore` have the same meaning with and without a reranker.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** `message` is for the operator and contains nothing of query, passages or key. */
export class RerankerError extends Schema.TaggedError<RerankerError>()("RerankerError", {
  message: Schema.String
}) {}

export class Reranker extends Context.Tag("capabilities/Reranker")<
  Reranker,
  {
    /** Number of candidates per requested result; 1 for a reranker that keeps their order. */
    readonly widen: number
    /** The relevance of each passage to the query, 0..1, in the order of the passages. Has a time-out. */
    readonly rerank: (
      query: string,
      passages: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<number>, RerankerError>
  }
>() {}
