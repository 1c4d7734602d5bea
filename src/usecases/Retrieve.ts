/** Search of source chunks without generation. */
import * as Effect from "effect/Effect"
import { type FoundChunk, VectorSearch } from "../capabilities/VectorSearch.ts"
import type { AgentScope } from "../domain/Access.ts"
import * as Traced from "../domain/Traced.ts"
import type { Chunk, RetrieveFilter, RetrieveRequest } from "../domain/Chunk.ts"
import { SourceSelection } from "../store/SourceSelection.ts"

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
    const selection = yield* SourceSelection

    /** Undefined: all. Ids alone need no look-up: the search itself is held to the scope's agent. */
    const sourcesOf = (scope: AgentScope, filter: RetrieveFilter = {}) =>
      filter.sourceTypes === undefined && filter.metadata === undefined
        ? Effect.succeed(filter.sourceIds)
        : selection.matching(scope, filter)

    /** Best first; only chunks of the scope's agent and the filter's sources that score at least `minScore`. */
    const run = Traced.fn("Retrieve.run")(function* (scope: AgentScope, request: RetrieveRequest) {
      const sourceIds = yield* sourcesOf(scope, request.filter)
      const { minScore, query: text, topK } = request
      const { chunks } = yield* search.search(scope, { text, topK, minScore, sourceIds })
      return { chunks: chunks.map(view) }
    })
    return { run } as const
  })
}) {}
