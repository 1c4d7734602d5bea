/**
 * Search whose best results are sorted by a reranker. The backend finds several times the requested number, and the
 * reranker's first ones are returned. When it fails, the order of the scores is kept.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { embeddingText } from "../../search/Packer.ts"
import { Reranker } from "../Reranker.ts"
import { type FoundChunk, type SearchQuery, VectorSearch } from "../VectorSearch.ts"

/** By descending `relevance`; equal ones keep their order. */
const ordered = (chunks: ReadonlyArray<FoundChunk>, relevance: ReadonlyArray<number>) =>
  chunks
    .map((chunk, index) => ({ chunk, relevance: relevance[index] ?? 0 }))
    .toSorted((one, other) => other.relevance - one.relevance)
    .map(({ chunk }) => chunk)

/** Decorates the provided `VectorSearch`. With a reranker whose `widen` is 1, it is that search itself. */
export const layerReranked: Layer.Layer<VectorSearch, never, VectorSearch | Reranker> = Layer.effect(
  VectorSearch,
  Effect.gen(function* () {
    const inner = yield* VectorSearch
    const { rerank, widen } = yield* Reranker
    if (widen <= 1) return inner

    const search: typeof inner.search = (scope, query: SearchQuery) =>
      Effect.gen(function* () {
        if (query.rerank === false) return yield* inner.search(scope, query)
        const found = yield* inner.search(scope, { ...query, topK: query.topK * widen })
        if (found.chunks.length <= 1) return found
        const passages = found.chunks.map((chunk) => embeddingText({ ...chunk, content: chunk.text }))
        const chunks = yield* rerank(query.text, passages).pipe(
          Effect.map((relevance) => ordered(found.chunks, relevance)),
          Effect.catchTag("RerankerError", ({ message }) =>
            Effect.as(
              Effect.logWarning("Search results were not reranked", { reason: message }),
              found.chunks
            )
          )
        )
        return { ...found, chunks: chunks.slice(0, query.topK) }
      })

    return VectorSearch.of({ ...inner, search })
  })
)
