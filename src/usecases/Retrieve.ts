/** Search of source chunks without generation (specification 4.4). */
import * as Effect from "effect/Effect"
import { type FoundChunk, VectorSearch } from "../capabilities/VectorSearch.ts"
import type { AgentScope } from "../domain/Access.ts"
import type { Chunk, RetrieveRequest } from "../domain/Chunk.ts"

const view = ({ id, documentId, sourceName, text, score, url }: FoundChunk): Chunk => ({
  id,
  documentId,
  sourceName,
  text,
  score,
  url
})

export class Retrieve extends Effect.Service<Retrieve>()("usecases/Retrieve", {
  effect: Effect.gen(function* () {
    const search = yield* VectorSearch
    /** Best first; only chunks of the scope's agent that score at least `minScore`. */
    const run = Effect.fn("Retrieve.run")(function* (scope: AgentScope, request: RetrieveRequest) {
      const { chunks } = yield* search.search(scope, {
        text: request.query,
        topK: request.topK,
        minScore: request.minScore
      })
      return { chunks: chunks.map(view) }
    })
    return { run } as const
  })
}) {}
