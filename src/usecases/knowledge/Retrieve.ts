/** Search of source chunks without generation. */
import * as Effect from "effect/Effect"
import { type FoundChunk, VectorSearch } from "../../capabilities/VectorSearch.ts"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import type { Chunk, RetrieveRequest } from "../../domain/knowledge/Chunk.ts"

const view = ({ id, documentId, sourceName, text, score, url }: FoundChunk): Chunk => ({
  id,
  documentId,
  sourceName,
  text,
  score,
  url
})

export class Retrieve extends Effect.Service<Retrieve>()("usecases/knowledge/Retrieve", {
  effect: Effect.gen(function* () {
    const search = yield* VectorSearch

    /** Best first; only chunks of the scope's and the filter's sources that score at least `minScore`. */
    const run = CheapSpans.fn("Retrieve.run")(function* (scope: ReadScope, request: RetrieveRequest) {
      const { filter, minScore, query: text, topK } = request
      const { chunks } = yield* search.search(scope, { text, topK, minScore, filter })
      return { chunks: chunks.map(view) }
    })
    return { run } as const
  })
}) {}
