/**
 * Retrieval in this process, over any PostgreSQL and without an extension. A search ranks by the index it has in memory,
 * then reads the texts together with the agent's version in one statement. When that is the version of the index, nothing
 * has changed and the result stands; else the index catches up and the search ranks again. What has been deleted is not
 * among the texts, so it never answers (guarantee G6). Not to be called inside a transaction.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { AgentScope } from "../../domain/Access.ts"
import { queryTerms } from "../../search/Bm25.ts"
import type { Ranked } from "../../search/Fusion.ts"
import { Embedder } from "../Embedder.ts"
import { type FoundChunk, type SearchQuery, VectorSearch } from "../VectorSearch.ts"
import { makeAgents } from "./InProcessAgents.ts"
import { makeQueryVectors } from "./InProcessQueryVectors.ts"
import { type Hit, makeRows } from "./InProcessRows.ts"

export interface InProcessOptions {
  /** Memory for the indexes of all agents, in bytes; the one used last stays even when it alone takes more. */
  readonly maxBytes: number
}

/** The second catching up began after the search did, so that nothing committed before the search is missing. */
const enough = 2
/** A search gives up here on an agent whose chunks are replaced again and again, and returns those that are left. */
const most = 5

const joined = (ranked: ReadonlyArray<Ranked>, hits: ReadonlyArray<Hit>): ReadonlyArray<FoundChunk> => {
  const byId = new Map<string, Hit>(hits.map((hit) => [hit.id, hit]))
  return ranked.flatMap(({ id, score, lexical, semantic }) => {
    const hit = byId.get(id)
    return hit === undefined ? [] : [{ ...hit, score, lexical, semantic }]
  })
}

const make = ({ maxBytes }: InProcessOptions) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { profile, dimensions, lexicalWeight } = yield* Embedder
    const queryVector = yield* makeQueryVectors
    const rows = makeRows(sql, profile)
    const agents = yield* makeAgents(rows, dimensions, maxBytes)

    const search = Effect.fn("VectorSearch.search")(function* (scope: AgentScope, query: SearchQuery) {
      const { agentId } = scope
      yield* Effect.annotateCurrentSpan({ agentId })
      const { text, topK, minScore } = query
      const sources = query.sourceIds === undefined ? undefined : new Set<string>(query.sourceIds)
      if (sources?.size === 0) return { chunks: [], degraded: false }
      const embedded = yield* Effect.cached(queryVector(text))
      const terms = queryTerms(text)
      const held = agents.hold(agentId)
      for (let refreshes = 0; ; refreshes++) {
        const { index } = held
        if (index === null) {
          yield* agents.refresh(agentId, held, { anew: true })
          continue
        }
        // Nothing to compare with: the model is left alone.
        const asked = index.hasVectors && text.trim() !== ""
        const vector = asked ? yield* embedded : Option.none<Float32Array>()
        const { version } = index
        const ranked = index.rank({
          terms,
          vector: Option.getOrUndefined(vector),
          lexicalWeight,
          topK,
          minScore,
          sources
        })
        const found = yield* rows.hits(
          scope,
          ranked.map(({ id }) => id)
        )
        const current = found.version === version || refreshes >= enough
        const complete = found.hits.length === ranked.length
        if ((current && complete) || refreshes >= most) {
          return { chunks: joined(ranked, found.hits), degraded: asked && Option.isNone(vector) }
        }
        // A chunk that went without a new version: whoever removed it bypassed the stores, so nothing seen is trusted.
        yield* agents.refresh(agentId, held, { anew: found.version === version })
      }
    })

    return VectorSearch.of({ search })
  })

/** Hybrid search of the rows of `chunks` and `chunk_embeddings`, ranked in this process. */
export const layerInProcess = (
  options: InProcessOptions
): Layer.Layer<VectorSearch, never, SqlClient.SqlClient | Embedder> =>
  Layer.scoped(VectorSearch, make(options))
