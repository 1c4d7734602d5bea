/**
 * Hybrid retrieval: `score = w · lexical + (1 − w) · semantic`, both absolute in 0..1. Every backend reads the rows of
 * `chunks` and `chunk_embeddings`, ranks alike, and returns only chunks of the scope's agent and of live sources
 * visible in the scope, which the statement that reads the texts enforces.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ReadScope } from "../domain/accounts/Access.ts"
import type { RetrieveFilter } from "../domain/knowledge/Chunk.ts"
import type { ChunkId, DocumentId, SourceId } from "../domain/Ids.ts"
import type { QueryForm } from "../search/Query.ts"

export interface SearchQuery {
  readonly text: string
  readonly topK: number
  /** 0..1. Chunks with a lower score are left out. A chunk with score 0 is never a hit. */
  readonly minScore: number
  /** In place of `minScore` where words alone decide, because the query or all chunks have no vector. */
  readonly minWordScore?: number | undefined
  /**
   * Only chunks of visible sources that meet it. Scores are those of the same search without it: a filter leaves chunks
   * out, and term weights are those of the whole agent.
   */
  readonly filter?: RetrieveFilter | undefined
  /** English terms that are added to those of `text`, with their occurrences. */
  readonly further?: QueryForm | undefined
  /** False when a reranker must not choose among the chunks with the best scores; default: true. */
  readonly rerank?: boolean | undefined
}

export interface FoundChunk {
  readonly id: ChunkId
  readonly documentId: DocumentId
  readonly sourceId: SourceId
  readonly sourceName: string
  readonly title: string
  readonly heading: string
  /** Index among the chunks of its document. */
  readonly ordinal: number
  readonly text: string
  readonly url: string
  /** 0..1; results are sorted by it. Equals `lexical` when the query or the chunk has no vector. */
  readonly score: number
  /** BM25 as a share of the query's maximum, 0..1. */
  readonly lexical: number
  /** The cosine of query and chunk, 0..1; 0 without a vector. */
  readonly semantic: number
}

export interface SearchResult {
  /** Best first; ties by id. */
  readonly chunks: ReadonlyArray<FoundChunk>
  /**
   * True when words alone decided, because the query could not be embedded or the agent's vectors are still being
   * loaded. It is not an error.
   */
  readonly degraded: boolean
}

export class VectorSearch extends Context.Tag("capabilities/VectorSearch")<
  VectorSearch,
  {
    /** Sees everything that was committed before it began. A failing database is a defect. */
    readonly search: (scope: ReadScope, query: SearchQuery) => Effect.Effect<SearchResult>
    /**
     * True once the indexes of the busiest agents are loaded and the embedder is prepared (if configured), or after a
     * time-out. It can be false only for some time after a start.
     */
    readonly warm: Effect.Effect<boolean>
  }
>() {}
