/** Cache of query vectors. Questions are repeated, and embedding one takes longer than the search. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { roundVector } from "../../domain/knowledge/StoredVector.ts"
import { EmbedderError, type EmbedderService } from "../Embedder.ts"
import { LruCache } from "../../concurrency/LruCache.ts"

/** Maximum number of cached queries. */
const maxCachedQueries = 1_000

const areFinite = (numbers: Float32Array): boolean => {
  for (const number of numbers) if (!Number.isFinite(number)) return false
  return true
}

/**
 * Embeds a query within the embedder's `queryTimeout`. None when that fails, which is logged without the text. The
 * vector is rounded like the stored ones, so that every engine computes the same cosines.
 */
export const makeQueryVectors = () => {
  const cache = new LruCache<Float32Array>()
  const embed = (embedder: EmbedderService, text: string, key: string) =>
    embedder.embedQuery(text).pipe(
      Effect.timeoutFail({
        duration: embedder.queryTimeout,
        onTimeout: () => new EmbedderError({ message: "The embedding took too long.", retryable: true })
      }),
      Effect.filterOrFail(
        (vector) => vector.length === embedder.dimensions && areFinite(vector),
        () => new EmbedderError({ message: "The embedding is not a vector of the model.", retryable: false })
      ),
      Effect.map(roundVector),
      Effect.tap((vector) => {
        cache.set(key, vector)
        cache.trim(maxCachedQueries)
      }),
      Effect.asSome,
      Effect.catchAll(({ message }) =>
        Effect.as(
          Effect.logWarning("A query is searched by words only", message),
          Option.none<Float32Array>()
        )
      ),
      CheapSpans.span("VectorSearch.embedQuery")
    )
  return (embedder: EmbedderService, text: string): Effect.Effect<Option.Option<Float32Array>> =>
    Effect.suspend(() => {
      const normalized = text.normalize("NFC").trim().replace(/\s+/g, " ")
      const key = `${embedder.profile} ${normalized}`
      const vector = cache.get(key)
      return vector === undefined ? embed(embedder, normalized, key) : Effect.succeedSome(vector)
    })
}
