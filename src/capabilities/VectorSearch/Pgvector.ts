/**
 * Retrieval by PostgreSQL with the extension pgvector 0.8 or later, whose migrations have been applied (see
 * store/database/PgvectorExtension.ts). Agents of up to 20,000 chunks are searched exactly. A larger one has an index
 * of its own, which returns the candidates by meaning; an exact search follows when it returned too few. Must not be
 * called inside a transaction.
 *
 * A frequently searched agent that is not large is also held in memory, where a search is much cheaper. When the texts
 * show that it has changed, the database searches until the memory is updated.
 *
 * An agent with vectors that are still to be converted (see store/knowledge/VectorEncoding.ts) is searched in this
 * process, with the same results. A large one is searched with the vectors that have been converted.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { maxComparedVectors } from "../../domain/knowledge/StoredVector.ts"
import { queryWords } from "../../search/Query.ts"
import { Embedder, embedderOf } from "../Embedder.ts"
import { type SearchQuery, VectorSearch } from "../VectorSearch.ts"
import { makeHotAgents } from "./HotAgents.ts"
import { type InProcessOptions, supportsLanguageOf, makeInProcess } from "./InProcess.ts"
import { LruCache } from "../../concurrency/LruCache.ts"
import { nearest } from "./PgvectorCandidates.ts"
import { exactSearches, hybrid, type HybridQuery, isCertain } from "./PgvectorQuery.ts"
import { makeIndexes } from "./PgvectorIndexes.ts"
import { makeRecall } from "./PgvectorRecall.ts"
import { type Counts, counts, makeWeights } from "./PgvectorWeights.ts"
import { filtersOf } from "./SourceFilters.ts"
import { warmUp, type WarmUpOptions } from "./WarmUp.ts"

export interface PgvectorOptions extends InProcessOptions, WarmUpOptions {
  /** Number of chunks, by `agent_stats`, up to which an agent is searched exactly; default: 20,000. */
  readonly exactUpTo?: number
  /** Share of approximate searches that are repeated exactly to measure recall, 0..1; default: 0.01. */
  readonly sampleRate?: number
  /** Maximum number of chunks of an agent that is held in memory; default: 20,000, 0 for none. */
  readonly heldUpTo?: number
  /** Number of searches per minute from which an agent is held; default: 8. */
  readonly often?: number
}

interface Agent {
  readonly chunks: number
  /** Total length of its chunks. */
  readonly length: number
  readonly profile: string | null
  readonly vectors: boolean
  /** True when some vectors are still to be converted. */
  readonly waiting: boolean
  /** The name of its index, which only a large agent has. */
  readonly index: string
  /** Increases with every change of what search finds. */
  readonly version: number
  /** Number of vectors; null if it is already known for this version. */
  readonly vectorCount: number | null
  /** Counts of the requested words. */
  readonly counts: Counts
}

const noAgent: Agent = {
  chunks: 0,
  length: 0,
  profile: null,
  vectors: false,
  waiting: false,
  index: "",
  version: 0,
  vectorCount: 0,
  counts: []
}

/** Maximum number of agents for which the presence and number of vectors are cached. */
const maxCountedAgents = 10_000

const make = (options: PgvectorOptions) =>
  Effect.gen(function* () {
    const {
      exactUpTo = maxComparedVectors,
      heldUpTo = maxComparedVectors,
      often = 8,
      sampleRate = 0.01
    } = options
    const sql = yield* SqlClient.SqlClient
    const embedder = yield* Embedder
    const { profile } = embedder
    const embedders = yield* embedderOf
    const inProcess = yield* makeInProcess(options)
    const { queryVector } = inProcess
    const countSearch = yield* makeHotAgents(inProcess, { minSearches: often, maxChunks: heldUpTo })
    const weights = makeWeights(sql)
    const vectorCounts = new LruCache<{ readonly version: number; readonly vectorCount: number }>()
    const indexes = yield* makeIndexes(sql)
    const sample = yield* makeRecall(sql, sampleRate)

    /**
     * Reads what determines the query: the profile of the live vectors, whether there are any, the number of chunks, and
     * how many chunks contain each of `terms`.
     */
    const readAgent = ({ agentId, tenantId }: AgentScope, terms: ReadonlyArray<string>) => {
      const stored = sql`from chunk_embeddings e
        where e.tenant_id = ${tenantId} and e.agent_id = ${agentId} and e.profile = coalesce(s.profile, ${profile})`
      return sql<Agent>`/* every tenant: words */
        select chunk_count::int as chunks, length_sum::float8 as length, profile,
          exists (select 1 ${stored}) as vectors,
          exists (select 1 from chunk_embeddings e
            where e.tenant_id = ${tenantId} and e.agent_id = ${agentId} and e.encoding < 2) as waiting,
          vector_index_name(agent_id, coalesce(profile, ${profile})) as index,
          version::float8 as version,
          case when version = ${vectorCounts.get(agentId)?.version ?? -1}::bigint then null
            else (select count(*)::int ${stored}) end as "vectorCount",
          ${counts(sql, { agentId, tenantId }, terms)} as counts
        from agent_stats s where s.tenant_id = ${tenantId} and s.agent_id = ${agentId}`.pipe(
        Effect.map(([row]) => row ?? noAgent),
        Effect.tap(({ profile: liveProfile, vectorCount, vectors, version }) =>
          Effect.sync(() => {
            if (!vectors || liveProfile !== profile) vectorCounts.delete(agentId)
            else if (vectorCount !== null) {
              vectorCounts.set(agentId, { version, vectorCount })
              vectorCounts.trim(maxCountedAgents)
            }
          })
        )
      )
    }

    const run = (scope: AgentScope, query: HybridQuery) =>
      hybrid(sql, scope, query).pipe(
        Effect.withSpan("VectorSearch.statement", { attributes: { approximate: query.approximate } })
      )

    const runExact = (scope: AgentScope, query: HybridQuery) =>
      Effect.gen(function* () {
        const [first, ...others] = exactSearches(query.chunks, exactUpTo)
        let exactQuery: HybridQuery = { ...query, ...first, approximate: false }
        let found = yield* run(scope, exactQuery)
        for (const other of others) {
          if (isCertain(found, exactQuery)) break
          exactQuery = { ...exactQuery, ...other }
          found = yield* run(scope, exactQuery)
        }
        return found
      })

    const runChecked = (scope: AgentScope, query: HybridQuery) =>
      Effect.gen(function* () {
        if (!query.approximate) return yield* runExact(scope, query)
        const found = yield* run(scope, query)
        if (found.nearCount < nearest(query)) return yield* runExact(scope, query)
        yield* sample(scope, found, runExact(scope, query))
        return found
      })

    const search = CheapSpans.fn("VectorSearch.search")(function* (scope: ReadScope, query: SearchQuery) {
      const { minScore, minWordScore = minScore, text, topK } = query
      yield* CheapSpans.annotate({ agentId: scope.agentId })
      const noResults = { chunks: [], degraded: false }
      if (text.trim() === "") return noResults
      const words = queryWords(text, query.further)
      const fromMemory = yield* inProcess.searchInMemory(scope, query, words)
      if (Option.isSome(fromMemory)) return fromMemory.value
      const state = readAgent(scope, weights.uncounted(scope.agentId, words))
      // Run concurrently if the agent had vectors the last time, because it most likely still has.
      const supportsLanguage = supportsLanguageOf(embedder, text)
      const [agent, earlyVector] =
        supportsLanguage && vectorCounts.get(scope.agentId) !== undefined
          ? yield* Effect.all([state, queryVector(embedder, text)], { concurrency: 2 })
          : [yield* state, null]
      if (agent.chunks === 0) return noResults
      if (agent.waiting && agent.chunks <= exactUpTo) return yield* inProcess.search(scope, query)
      const liveProfile = agent.profile ?? profile
      if (liveProfile === profile) yield* countSearch(scope, agent.chunks)
      const model = yield* embedders(liveProfile)
      // Without vectors to compare with, the model is not called.
      const comparable =
        agent.vectors && Option.isSome(model) && supportsLanguageOf(model.value, text) ? model.value : null
      const vector = yield* comparable === null
        ? Effect.succeedNone
        : earlyVector !== null && liveProfile === profile
          ? Effect.succeed(earlyVector)
          : queryVector(comparable, text)
      const weighed = yield* weights.weigh(scope, agent, words, agent.counts)
      const vectorCount = agent.vectorCount ?? vectorCounts.get(scope.agentId)?.vectorCount ?? 0
      const { chunks } = yield* runChecked(scope, {
        terms: weighed,
        chunks: agent.chunks,
        averageLength: agent.length / agent.chunks,
        vector: Option.getOrUndefined(vector),
        profile: liveProfile,
        incomplete: agent.waiting || vectorCount < agent.chunks,
        lexicalWeight: Option.getOrElse(model, () => embedder).lexicalWeight(words.termCount),
        topK,
        minScore: Option.isSome(vector) ? minScore : minWordScore,
        filters: filtersOf(scope, query),
        approximate: indexes.has(agent.index) && agent.chunks > exactUpTo && Option.isSome(vector)
      })
      const lacksVectors =
        agent.vectors && (Option.isNone(model) || (comparable !== null && Option.isNone(vector)))
      return { chunks, degraded: agent.waiting || lacksVectors }
    }, Effect.orDie)

    return VectorSearch.of({ search, warm: yield* warmUp(Effect.void, options) })
  })

/** Hybrid search in PostgreSQL. */
export const layerPgvector = (
  options: PgvectorOptions
): Layer.Layer<VectorSearch, never, SqlClient.SqlClient | Embedder> =>
  Layer.scoped(VectorSearch, make(options))
