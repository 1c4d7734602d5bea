/**
 * A second opinion on what search found: a model that reads query and passage together. It orders the candidates and
 * nothing else: `score` and `minScore` stay what VectorSearch says they are, with a reranker and without.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** `message` is written for the operator and holds nothing of query, passages or key. */
export class RerankerError extends Schema.TaggedError<RerankerError>()("RerankerError", {
  message: Schema.String
}) {}

export class Reranker extends Context.Tag("capabilities/Reranker")<
  Reranker,
  {
    /** Candidates it is given for each one that is wanted; 1 for one that keeps their order. */
    readonly widen: number
    /** The relevance of each passage to the query, 0..1, in the order of the passages. Has a time limit. */
    readonly rerank: (
      query: string,
      passages: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<number>, RerankerError>
  }
>() {}
