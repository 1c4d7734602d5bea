/**
 * The weights of a query's words in an agent. Counting the chunks with a common word takes as long as the rest of a
 * search, so the counts are cached while the agent's chunks do not change.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { termWeight } from "../../search/Bm25.ts"
import type { QueryForm, QueryWords } from "../../search/Query.ts"
import { pieceMark } from "../../search/Tokenizer.ts"
import { LruCache } from "../../concurrency/LruCache.ts"
import type { WeighedTerm } from "./PgvectorQuery.ts"

/** Maximum number of cached words of all agents. */
const maxCachedWords = 50_000
/**
 * Milliseconds after which words are counted again in any case, because an exchange of chunks may leave all sums equal.
 */
const cacheLifetimeMs = 30_000

/** The state of an agent's chunks on which the counts depend. */
export interface ChunkState {
  readonly chunks: number
  /** The sum of their lengths. */
  readonly length: number
  readonly version: number
}

interface CachedCounts extends ChunkState {
  readonly since: number
  readonly counts: Map<string, number>
}

/** Words with the number of the agent's chunks that contain each. */
export type Counts = ReadonlyArray<readonly [term: string, chunks: number]>

/**
 * An SQL expression for the {@link Counts} of the words in the agent. An agent with only English chunks has no word
 * pieces.
 */
export const counts = (
  sql: SqlClient.SqlClient,
  { agentId, tenantId }: AgentScope,
  terms: ReadonlyArray<string>
) =>
  terms.length === 0
    ? sql`'[]'::json`
    : sql`(
      select json_agg(json_build_array(term, counted.chunks))
      from jsonb_array_elements_text(${JSON.stringify(terms)}::jsonb) as term
      cross join lateral (
        select case when starts_with(term, ${pieceMark}) and not (
          select exists (select from chunks where tenant_id = ${tenantId} and agent_id = ${agentId} and not english)
        ) then 0 else (
          select count(*)::int from chunks
          where tenant_id = ${tenantId} and agent_id = ${agentId} and version is not null
            and tsv @@ array_to_tsvector(array[term])::text::tsquery
        ) end as chunks
      ) counted
    )`

/** The distinct terms of all forms. */
const termsOf = ({ forms }: QueryWords): ReadonlyArray<string> => [
  ...new Set(forms.flatMap((form) => [...form.keys()]))
]

/** The weight of each term of a form, as a share of the whole form. */
const sharesOf = (form: QueryForm, weightOf: (term: string) => number): ReadonlyMap<string, number> => {
  const weights = Array.from(form, ([term, times]) => [term, times * weightOf(term)] as const)
  const whole = Math.max(
    1e-9,
    weights.reduce((sum, [, value]) => sum + value, 0)
  )
  return new Map(weights.map(([term, value]) => [term, value / whole]))
}

/** Weighs a query's terms for an agent, the highest first, without those that no chunk has. */
export const makeWeights = (sql: SqlClient.SqlClient) => {
  const agents = new LruCache<CachedCounts>()

  const countedOf = (agentId: string, { chunks, length, version }: ChunkState, now: number): CachedCounts => {
    const before = agents.get(agentId)
    const isCurrent =
      before?.chunks === chunks && before.length === length && now - before.since < cacheLifetimeMs
    if (isCurrent) return before
    const counted: CachedCounts = { chunks, length, version, since: now, counts: new Map() }
    agents.set(agentId, counted)
    return counted
  }

  const count = (agent: AgentScope, terms: ReadonlyArray<string>) =>
    Effect.map(
      sql<{
        readonly counts: Counts
      }>`/* every tenant: words */ select ${counts(sql, agent, terms)} as counts`,
      ([row]) => row?.counts ?? []
    )

  /** The words that probably have to be counted, by the cache alone. */
  const uncounted = (agentId: string, query: QueryWords) => {
    const known = agents.get(agentId)?.counts
    return termsOf(query).filter((term) => known?.has(term) !== true)
  }

  /** Weighs the words, with counts from the same snapshot as the state of the agent's chunks. */
  const weigh = (scope: AgentScope, agent: ChunkState, query: QueryWords, newCounts: Counts) =>
    Effect.gen(function* () {
      const counted = countedOf(scope.agentId, agent, yield* monotonicMillis)
      for (const [term, chunks] of newCounts) counted.counts.set(term, chunks)
      const terms = termsOf(query)
      // Some are missing if the agent has changed since its words were cached.
      const missing = terms.filter((term) => !counted.counts.has(term))
      if (missing.length > 0) {
        for (const [term, chunks] of yield* count(scope, missing)) counted.counts.set(term, chunks)
      }
      if (missing.length > 0 || newCounts.length > 0)
        agents.trimToCost(maxCachedWords, ({ counts }) => counts.size)
      const chunksOf = (term: string) => counted.counts.get(term) ?? 0
      const weightOf = (term: string) =>
        termWeight(query, Math.max(agent.chunks, chunksOf(term)), chunksOf(term))
      const [one, two] = query.forms.map((form) => sharesOf(form, weightOf))
      return (
        terms
          .map((term): WeighedTerm => ({
            term,
            one: one?.get(term) ?? 0,
            two: two?.get(term) ?? 0,
            chunks: chunksOf(term)
          }))
          // A cached count of 0 may be outdated.
          .filter(({ chunks }) => chunks > 0 || counted.version !== agent.version)
          .toSorted((a, b) => Math.max(b.one, b.two) - Math.max(a.one, a.two))
      )
    })

  return { uncounted, weigh } as const
}
