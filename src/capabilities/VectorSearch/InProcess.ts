/**
 * Retrieval in this process, over any PostgreSQL and without an extension. A search ranks by its index in memory, then
 * reads the texts together with the agent's version in one statement, which concurrent searches share. If the version
 * is that of the index, the result is current; else the index is updated and the search ranks again. Deleted chunks are
 * not among the texts, so they are never returned. Must not be called inside a transaction.
 *
 * The busiest agents are loaded at the start, any other when it is first searched. The words of a large agent are
 * loaded first; it is searched by them until its vectors are loaded.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import type { AgentId } from "../../domain/Ids.ts"
import * as Batcher from "../../concurrency/Batcher.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import type { Ranked } from "../../search/Fusion.ts"
import { mayBeEnglish } from "../../search/Language.ts"
import { type QueryWords, queryWords } from "../../search/Query.ts"
import { Embedder, embedderOf, type EmbedderService } from "../Embedder.ts"
import { type FoundChunk, type SearchQuery, type SearchResult, VectorSearch } from "../VectorSearch.ts"
import { makeAgents } from "./InProcessAgents.ts"
import type { InProcessIndex } from "./InProcessIndex.ts"
import { makeQueryVectors } from "./InProcessQueryVectors.ts"
import { type Hit, makeRows, type Rows } from "./InProcessRows.ts"
import { filtersOf } from "./SourceFilters.ts"
import { loadBusiest, warmUp, type WarmUpOptions } from "./WarmUp.ts"

export interface InProcessOptions {
  /** Memory for the indexes of all agents, in bytes. The most recently used index stays even if it is larger. */
  readonly maxBytes: number
  /** Number of chunks above which an agent is searched by words while its vectors are loading; default: 200. */
  readonly wordsFirstAbove?: number
}

/** Maximum number of searches whose texts one statement reads. */
const maxBatchSearches = 16
/** Number of updates after which the index is current: the second one began after the search did. */
const refreshesUntilCurrent = 2
/**
 * Maximum number of attempts for an agent whose chunks are replaced constantly. After it, the remaining chunks are
 * returned.
 */
const maxRefreshes = 5

interface SearchInput {
  readonly words: QueryWords
  readonly vector: Option.Option<Float32Array>
  readonly sources: ReadonlySet<string> | undefined
}

const idsOf = (ranked: ReadonlyArray<Ranked>) => ranked.map(({ id }) => id)

const toFoundChunks = (
  ranked: ReadonlyArray<Ranked>,
  hits: ReadonlyArray<Hit>
): ReadonlyArray<FoundChunk> => {
  const byId = new Map<string, Hit>(hits.map((hit) => [hit.id, hit]))
  return ranked.flatMap(({ id, score, lexical, semantic }) => {
    const hit = byId.get(id)
    return hit === undefined ? [] : [{ ...hit, score, lexical, semantic }]
  })
}

/** Whether the model supports the language of the query: an English-only model is not used for other languages. */
export const supportsLanguageOf = ({ englishOnly }: EmbedderService, text: string): boolean =>
  text.trim() !== "" && (englishOnly !== true || mayBeEnglish(text))

/** The search over `rows`, and operations to control which agents are in memory. */
export const makeOverRows = (rows: Rows, { maxBytes, wordsFirstAbove = 200 }: InProcessOptions) =>
  Effect.gen(function* () {
    const queryVector = makeQueryVectors()
    const current = yield* Embedder
    const embedders = yield* embedderOf
    const hits = yield* Batcher.makeBatcher(maxBatchSearches, rows.hits)
    const dimensionsOf = (profile: string) =>
      Effect.map(embedders(profile), (found) => (Option.isSome(found) ? found.value.dimensions : 0))
    const agents = yield* makeAgents(rows, dimensionsOf, { maxBytes, wordsFirstAbove })

    const ranked = (
      index: InProcessIndex,
      embedder: EmbedderService,
      query: SearchQuery,
      input: SearchInput
    ) =>
      index.rank({
        words: input.words,
        vector: Option.getOrUndefined(input.vector),
        lexicalWeight: embedder.lexicalWeight(input.words.termCount),
        topK: query.topK,
        minScore: query.minScore,
        minWordScore: query.minWordScore,
        sources: input.sources
      })

    /** The sources that meet `filters`; undefined for all. This is checked again when their texts are read. */
    const visibleSources = (scope: ReadScope, filters: string | null) =>
      filters === null ? Effect.succeed(undefined) : rows.visible(scope, filters)

    const search = CheapSpans.fn("VectorSearch.search")(function* (scope: ReadScope, query: SearchQuery) {
      const { agentId } = scope
      yield* CheapSpans.annotate({ agentId })
      const { text } = query
      const filters = filtersOf(scope, query)
      const words = queryWords(text, query.further)
      const entry = agents.entryOf(agentId)
      // Embedded once, and again if the agent moves to another model meanwhile.
      let queried: { readonly profile: string; readonly vector: Option.Option<Float32Array> } | undefined
      let refreshes = 0
      for (;;) {
        const { index } = entry
        if (index === null) {
          yield* agents.load(scope, entry)
          refreshes++
          continue
        }
        const embedder = Option.getOrElse(yield* embedders(index.profile), () => current)
        // Without vectors to compare with, the model is not called.
        const { complete: hasAllVectors, hasVectors } = index
        if (!hasAllVectors) yield* agents.addVectors(scope, entry)
        const usesVectors = hasAllVectors && hasVectors && supportsLanguageOf(embedder, text)
        if (usesVectors && queried?.profile !== index.profile) {
          queried = { profile: index.profile, vector: yield* queryVector(embedder, text) }
        }
        const vector = usesVectors && queried !== undefined ? queried.vector : Option.none<Float32Array>()
        const sources = yield* visibleSources(scope, filters)
        if (sources?.size === 0) return { chunks: [], degraded: false }
        if (index.changing) {
          // A running update has dropped chunks, and will read them again.
          yield* agents.refresh(scope, entry, { rebuild: false })
          refreshes++
        }
        // Another index has replaced it, or its first vectors were loaded after the query was left without one.
        if (index.changing || index.hasVectors !== hasVectors) continue
        const { version } = index
        const best = ranked(index, embedder, query, { words, vector, sources })
        const found = yield* hits({ scope, filters, ids: idsOf(best) })
        const isCurrent = found.version === version || refreshes >= refreshesUntilCurrent
        const isComplete = found.hits.length === best.length
        if ((isCurrent && isComplete) || refreshes >= maxRefreshes) {
          return {
            chunks: toFoundChunks(best, found.hits),
            degraded: !hasAllVectors || !index.comparable || (usesVectors && Option.isNone(vector))
          }
        }
        // The missing chunks are most likely of a source that is no longer visible. Read the visible sources again.
        refreshes++
        if (found.version === version && filters !== null) continue
        // If a chunk disappeared without a new version, the stores did not remove it, and the index is rebuilt.
        yield* agents.refresh(scope, entry, { rebuild: found.version === version })
      }
    })

    /** The agent's index in memory, if it is current and of the current model. Reads nothing. */
    const searchInMemory = (scope: ReadScope, query: SearchQuery, words: QueryWords) =>
      Effect.gen(function* () {
        const index = agents.findEntry(scope.agentId)?.index ?? null
        if (index === null || !index.complete || index.profile !== current.profile)
          return Option.none<SearchResult>()
        const usesVectors = index.hasVectors && supportsLanguageOf(current, query.text)
        const vector = usesVectors ? yield* queryVector(current, query.text) : Option.none<Float32Array>()
        const filters = filtersOf(scope, query)
        const { version } = index
        const sources = yield* visibleSources(scope, filters)
        if (index.changing) return Option.none<SearchResult>()
        const best = ranked(index, current, query, { words, vector, sources })
        const found = yield* hits({ scope, filters, ids: idsOf(best) })
        if (found.version !== version || found.hits.length !== best.length) {
          return Option.none<SearchResult>()
        }
        const chunks = toFoundChunks(best, found.hits)
        return Option.some<SearchResult>({ chunks, degraded: usesVectors && Option.isNone(vector) })
      })

    /** Loads the agent, or its changes, into memory for later searches. */
    const loadIntoMemory = (agent: AgentScope) =>
      Effect.suspend(() => {
        const entry = agents.entryOf(agent.agentId)
        return agents.refresh(agent, entry, { rebuild: entry.index === null })
      })

    const holds = (agentId: AgentId) => agents.findEntry(agentId) !== undefined
    return {
      agents,
      search,
      queryVector,
      searchInMemory,
      loadIntoMemory,
      holds,
      dropFromMemory: agents.drop
    } as const
  })

/** {@link makeOverRows} with the rows of the database. */
export const makeInProcess = (options: InProcessOptions) =>
  Effect.flatMap(Effect.all([SqlClient.SqlClient, Embedder]), ([sql, { profile }]) =>
    makeOverRows(makeRows(sql, profile), options)
  )

export interface LayerOptions extends InProcessOptions, WarmUpOptions {}

/**
 * Hybrid search of the rows of `chunks` and `chunk_embeddings`, ranked in this process. Starts loading the busiest
 * agents.
 */
export const layerInProcess = (
  options: LayerOptions
): Layer.Layer<VectorSearch, never, SqlClient.SqlClient | Embedder> =>
  Layer.scoped(
    VectorSearch,
    Effect.gen(function* () {
      const { agents, search } = yield* makeInProcess(options)
      const warm = yield* warmUp(loadBusiest(agents, options.maxBytes), options)
      return VectorSearch.of({ search, warm })
    })
  )
