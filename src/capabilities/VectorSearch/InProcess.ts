/**
 * Retrieval in this process, over any PostgreSQL and without an extension. A search ranks by the index it has in memory,
 * then reads the texts together with the agent's version in one statement, which searches at the same time share. When that
 * is the version of the index, nothing has changed and the result stands; else the index catches up and the search ranks again. What has been deleted is not
 * among the texts, so it never answers. Not to be called inside a transaction.
 *
 * The busiest agents are read at the start, any other when it is first asked: of a large one the words first, by which it is
 * searched until its vectors have followed.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import type { AgentId } from "../../domain/Ids.ts"
import * as Batcher from "../../concurrency/Batcher.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import type { Ranked } from "../../search/Fusion.ts"
import { mayBeEnglish } from "../../search/Language.ts"
import { type QueryForm, queryForms } from "../../search/Query.ts"
import { Embedder, embedderOf, type EmbedderService } from "../Embedder.ts"
import { type FoundChunk, type SearchQuery, type SearchResult, VectorSearch } from "../VectorSearch.ts"
import { makeAgents } from "./InProcessAgents.ts"
import type { InProcessIndex } from "./InProcessIndex.ts"
import { makeQueryVectors } from "./InProcessQueryVectors.ts"
import { type Hit, makeRows } from "./InProcessRows.ts"
import { warmUp } from "./InProcessWarmUp.ts"
import { filtersOf } from "./Visible.ts"

export interface InProcessOptions {
  /** Memory for the indexes of all agents, in bytes; the one used last stays even when it alone takes more. */
  readonly maxBytes: number
  /** Chunks above which an agent is searched by its words as soon as these are read, and its vectors follow; 200 by default. */
  readonly wordsFirstAbove?: number
}

/** Searches whose texts one statement reads at most. */
const maxBatchSearches = 16
/** The second catching up began after the search did, so that nothing committed before the search is missing. */
const freshReads = 2
/** A search gives up here on an agent whose chunks are replaced again and again, and returns those that are left. */
const maxReads = 5

interface Asked {
  readonly forms: ReadonlyArray<QueryForm>
  readonly vector: Option.Option<Float32Array>
  readonly sources: ReadonlySet<string> | undefined
}

const idsOf = (ranked: ReadonlyArray<Ranked>) => ranked.map(({ id }) => id)

const joined = (ranked: ReadonlyArray<Ranked>, hits: ReadonlyArray<Hit>): ReadonlyArray<FoundChunk> => {
  const byId = new Map<string, Hit>(hits.map((hit) => [hit.id, hit]))
  return ranked.flatMap(({ id, score, lexical, semantic }) => {
    const hit = byId.get(id)
    return hit === undefined ? [] : [{ ...hit, score, lexical, semantic }]
  })
}

/** Whether the model is asked about the query at all: one that knows only English is not about other languages. */
export const isAbout = ({ englishOnly }: EmbedderService, text: string): boolean =>
  text.trim() !== "" && (englishOnly !== true || mayBeEnglish(text))

/** Searches, and what decides beside them which agents are held in memory. */
export const makeInProcess = ({ maxBytes, wordsFirstAbove = 200 }: InProcessOptions) =>
  Effect.gen(function* () {
    const queryVector = makeQueryVectors()
    const sql = yield* SqlClient.SqlClient
    const current = yield* Embedder
    const embedders = yield* embedderOf
    const rows = makeRows(sql, current.profile)
    const hits = yield* Batcher.makeBatcher(maxBatchSearches, rows.hits)
    const dimensionsOf = (profile: string) =>
      Effect.map(embedders(profile), (found) => (Option.isSome(found) ? found.value.dimensions : 0))
    const agents = yield* makeAgents(rows, dimensionsOf, { maxBytes, wordsFirstAbove })

    const ranked = (index: InProcessIndex, embedder: EmbedderService, query: SearchQuery, asked: Asked) =>
      index.rank({
        forms: asked.forms,
        vector: Option.getOrUndefined(asked.vector),
        lexicalWeight: embedder.lexicalWeight,
        topK: query.topK,
        minScore: query.minScore,
        sources: asked.sources
      })

    /** The sources that meet `filters`; undefined: all. Whether they still do is asked again when their texts are read. */
    const visible = (scope: ReadScope, filters: string | null) =>
      filters === null ? Effect.succeed(undefined) : rows.visible(scope, filters)

    const search = CheapSpans.fn("VectorSearch.search")(function* (scope: ReadScope, query: SearchQuery) {
      const { agentId } = scope
      yield* CheapSpans.annotate({ agentId })
      const { text } = query
      const filters = filtersOf(scope, query)
      const forms = queryForms(text)
      const held = agents.hold(agentId)
      // Embedded once, and anew when the agent moves to another model meanwhile.
      let vectorOf: { readonly profile: string; readonly vector: Option.Option<Float32Array> } | undefined
      for (let refreshes = 0; ; refreshes++) {
        const { index } = held
        if (index === null) {
          yield* agents.read(scope, held)
          continue
        }
        const embedder = Option.getOrElse(yield* embedders(index.profile), () => current)
        // Nothing to compare with: the model is left alone.
        const { complete: whole } = index
        const asked = whole && index.hasVectors && isAbout(embedder, text)
        if (asked && vectorOf?.profile !== index.profile) {
          vectorOf = { profile: index.profile, vector: yield* queryVector(embedder, text) }
        }
        const vector = asked && vectorOf !== undefined ? vectorOf.vector : Option.none<Float32Array>()
        const sources = yield* visible(scope, filters)
        if (sources?.size === 0) return { chunks: [], degraded: false }
        const { version } = index
        const best = ranked(index, embedder, query, { forms, vector, sources })
        const found = yield* hits({ scope, filters, ids: idsOf(best) })
        const fresh = found.version === version || refreshes >= freshReads
        const complete = found.hits.length === best.length
        if ((fresh && complete) || refreshes >= maxReads) {
          return {
            chunks: joined(best, found.hits),
            degraded: !whole || !index.comparable || (asked && Option.isNone(vector))
          }
        }
        // Of a source that is no longer visible, most likely: those that are will be asked for again.
        if (found.version === version && filters !== null) continue
        // A chunk that went without a new version was removed past the stores, so nothing in memory is trusted.
        yield* agents.refresh(scope, held, { anew: found.version === version })
      }
    })

    /** The agent's index in memory, if it is current and of the current model; reads nothing. */
    const remembered = (scope: ReadScope, query: SearchQuery, forms: ReadonlyArray<QueryForm>) =>
      Effect.gen(function* () {
        const index = agents.held(scope.agentId)?.index ?? null
        if (index === null || !index.complete || index.profile !== current.profile)
          return Option.none<SearchResult>()
        const asked = index.hasVectors && isAbout(current, query.text)
        const vector = asked ? yield* queryVector(current, query.text) : Option.none<Float32Array>()
        const filters = filtersOf(scope, query)
        const { version } = index
        const sources = yield* visible(scope, filters)
        const best = ranked(index, current, query, { forms, vector, sources })
        const found = yield* hits({ scope, filters, ids: idsOf(best) })
        if (found.version !== version || found.hits.length !== best.length) {
          return Option.none<SearchResult>()
        }
        const chunks = joined(best, found.hits)
        return Option.some<SearchResult>({ chunks, degraded: asked && Option.isNone(vector) })
      })

    /** Reads the agent into memory, or what has changed of it, for searches to come. */
    const remember = (agent: AgentScope) =>
      Effect.suspend(() => {
        const held = agents.hold(agent.agentId)
        return agents.refresh(agent, held, { anew: held.index === null })
      })

    const holds = (agentId: AgentId) => agents.held(agentId) !== undefined
    return { agents, search, queryVector, remembered, remember, holds, forget: agents.forget } as const
  })

export interface LayerOptions extends InProcessOptions {
  /** Longest time that the busiest agents are waited for before the search is called warm; 30 seconds by default. */
  readonly warmUpTimeout?: Duration.DurationInput
}

/** Hybrid search of the rows of `chunks` and `chunk_embeddings`, ranked in this process. Begins to read the busiest agents. */
export const layerInProcess = ({
  warmUpTimeout = "30 seconds",
  ...options
}: LayerOptions): Layer.Layer<VectorSearch, never, SqlClient.SqlClient | Embedder> =>
  Layer.scoped(
    VectorSearch,
    Effect.gen(function* () {
      const { agents, search } = yield* makeInProcess(options)
      const warm = yield* warmUp(agents, { maxBytes: options.maxBytes, timeout: warmUpTimeout })
      return VectorSearch.of({ search, warm })
    })
  )
