/**
 * Hybrid retrieval: `score = w · lexical + (1 − w) · semantic`, both absolute in 0..1 (contract 7). Every layer reads the
 * rows of `chunks` and `chunk_embeddings`, ranks alike, and returns only chunks of the scope's agent and of live sources.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { AgentScope } from "../domain/Access.ts"
import type { ChunkId, DocumentId, SourceId } from "../domain/Ids.ts"

export interface SearchQuery {
  readonly text: string
  readonly topK: number
  /** 0..1; chunks below it are left out. */
  readonly minScore: number
}

export interface FoundChunk {
  readonly id: ChunkId
  readonly documentId: DocumentId
  readonly sourceId: SourceId
  readonly sourceName: string
  readonly title: string
  readonly heading: string
  readonly text: string
  readonly url: string
  /** 0..1, orders the result. */
  readonly score: number
  readonly lexical: number
  readonly semantic: number
}

export interface SearchResult {
  /** Best first; ties by id. */
  readonly chunks: ReadonlyArray<FoundChunk>
  /** True when the query could not be embedded and words alone decided. */
  readonly degraded: boolean
}

export class VectorSearch extends Context.Tag("capabilities/VectorSearch")<
  VectorSearch,
  {
    readonly search: (scope: AgentScope, query: SearchQuery) => Effect.Effect<SearchResult>
  }
>() {}
