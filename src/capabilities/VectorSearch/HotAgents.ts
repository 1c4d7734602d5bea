/** Selects frequently searched agents, which are held in memory. They are loaded in the background. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { LruCache } from "../../concurrency/LruCache.ts"

/** Searches are counted per minute, in milliseconds. */
const periodMs = 60_000
/**
 * Minimum time in milliseconds between two loads of an agent, so that an agent that changes constantly is not loaded
 * constantly.
 */
const minLoadIntervalMs = 1_000
/** Maximum number of agents that are counted. */
const maxAgents = 10_000

interface SearchCount {
  readonly since: number
  count: number
  isLoading: boolean
  /** The earliest time of the next load, in monotonic milliseconds. */
  nextLoadAt: number
}

export interface HotAgentsOptions {
  /** Number of searches per minute from which an agent is held. */
  readonly minSearches: number
  /** Maximum number of chunks of an agent that is held. */
  readonly maxChunks: number
}

/** The agents in memory. */
export interface Memory {
  readonly holds: (agentId: AgentId) => boolean
  /** Loads the agent, or its changes. */
  readonly loadIntoMemory: (agent: AgentScope) => Effect.Effect<void>
  readonly dropFromMemory: (agentId: AgentId) => void
}

/**
 * To be called for every search that was not answered from memory. Loads a frequently searched agent, or the changes of
 * an agent that is in memory.
 */
export const makeHotAgents = (
  { dropFromMemory, holds, loadIntoMemory }: Memory,
  { maxChunks, minSearches }: HotAgentsOptions
) =>
  Effect.map(Effect.scope, (scope) => {
    const agents = new LruCache<SearchCount>()

    const countOf = (agentId: AgentId, now: number): SearchCount => {
      const before = agents.get(agentId)
      if (before !== undefined && now - before.since < periodMs) return before
      const { nextLoadAt = 0, isLoading = false } = before ?? {}
      const searches = { since: now, count: 0, isLoading, nextLoadAt }
      agents.set(agentId, searches)
      agents.trim(maxAgents)
      return searches
    }

    const startLoad = (agent: AgentScope, searches: SearchCount) =>
      loadIntoMemory(agent).pipe(
        Effect.catchAllCause((cause) =>
          Effect.logWarning("An agent's chunks could not be read into memory", cause)
        ),
        Effect.zipRight(monotonicMillis),
        Effect.tap((now) =>
          Effect.sync(() => {
            const latest = agents.get(agent.agentId) ?? searches
            latest.isLoading = false
            latest.nextLoadAt = now + minLoadIntervalMs
          })
        ),
        Effect.withSpan("VectorSearch.remember", { root: true, attributes: { agentId: agent.agentId } }),
        Effect.forkIn(scope)
      )

    return (agent: AgentScope, chunks: number): Effect.Effect<void> =>
      Effect.flatMap(monotonicMillis, (now) => {
        const { agentId } = agent
        if (chunks > maxChunks) return Effect.sync(() => dropFromMemory(agentId))
        const searches = countOf(agentId, now)
        searches.count += 1
        const isHot = searches.count >= minSearches || holds(agentId)
        if (!isHot || searches.isLoading || now < searches.nextLoadAt) return Effect.void
        searches.isLoading = true
        return Effect.asVoid(startLoad(agent, searches))
      })
  })
