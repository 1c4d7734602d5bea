/**
 * Hybrid retrieval: `score = w · lexical + (1 − w) · semantic`, both absolute in 0..1. Every layer reads the
 * rows of `chunks` and `chunk_embeddings`, ranks alike, and returns only chunks of the scope's agent and of live sources that
 * the scope makes visible: the statement that reads the texts says so.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ReadScope } from "../domain/accounts/Access.ts"
import type { RetrieveFilter } from "../domain/knowledge/Chunk.ts"
import type { ChunkId, DocumentId, SourceId } from "../domain/Ids.ts"

export interface SearchQuery {
  readonly text: string
  readonly topK: number
  /** 0..1; chunks below it are left out. A chunk that scores 0 is never a hit. */
  readonly minScore: number
  /**
   * Only chunks of sources that meet it, of those that the scope makes visible. Scores are those of the same search without
   * it: a filter leaves chunks out, and what words are worth is measured over the whole agent.
   */
  readonly filter?: RetrieveFilter | undefined
}

export interface FoundChunk {
  readonly id: ChunkId
  readonly documentId: DocumentId
  readonly sourceId: SourceId
  readonly sourceName: string
  readonly title: string
  readonly heading: string
  /** Place among the chunks of its document. */
  readonly ordinal: number
  readonly text: string
  readonly url: string
  /** 0..1, orders the result; equal to `lexical` when the query or the chunk has no vector. */
  readonly score: number
  /** BM25 as a share of what the query could reach, 0..1. */
  readonly lexical: number
  /** The cosine of query and chunk, 0..1; 0 without a vector. */
  readonly semantic: number
}

export interface SearchResult {
  /** Best first; ties by id. */
  readonly chunks: ReadonlyArray<FoundChunk>
  /**
   * True when words alone decided, because the query could not be embedded or the agent's vectors are still being read; such a
   * result has no error.
   */
  readonly degraded: boolean
}

export class VectorSearch extends Context.Tag("capabilities/VectorSearch")<
  VectorSearch,
  {
    /** Sees everything that was committed before it began. A database that fails is a defect. */
    readonly search: (scope: ReadScope, query: SearchQuery) => Effect.Effect<SearchResult>
    /**
     * True once the indexes of the busiest agents are loaded, or the time for loading them is over, so that nothing waits for it any
     * longer. False for some time after a start at most.
     */
    readonly warm: Effect.Effect<boolean>
  }
>() {}
