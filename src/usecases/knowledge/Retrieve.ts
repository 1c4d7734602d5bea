/** Searches source chunks, without a generated answer. */
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import { type FoundChunk, VectorSearch } from "../../capabilities/VectorSearch.ts"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { withoutServices } from "../../concurrency/WithoutServices.ts"
import type { Chunk, RetrieveRequest } from "../../domain/knowledge/Chunk.ts"
import { makeMaskedQuery } from "./MaskedQuery.ts"

const toChunk: (found: FoundChunk) => Chunk = Struct.pick(
  "id",
  "documentId",
  "sourceName",
  "text",
  "score",
  "url"
)

export class Retrieve extends Effect.Service<Retrieve>()("usecases/knowledge/Retrieve", {
  effect: Effect.gen(function* () {
    const search = yield* VectorSearch
    const maskedQuery = yield* makeMaskedQuery

    /** Chunks with a score of at least `minScore` from sources that the scope and the filter allow, best first. */
    const run = CheapSpans.fn("Retrieve.run")(function* (scope: ReadScope, request: RetrieveRequest) {
      const { filter, minScore, query, topK } = request
      const text = yield* maskedQuery(scope, query)
      const { chunks } = yield* search.search(scope, { text, topK, minScore, filter })
      return { chunks: chunks.map(toChunk) }
    }, withoutServices)
    return { run } as const
  })
}) {}
