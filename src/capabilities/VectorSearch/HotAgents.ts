/** Selects frequently searched agents, which are held in memory. They are loaded in the background. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { monotonicMillis } from "../../domain/Elapsed.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { LruCache } from "../../concurrency/LruCache.ts"

/** Searches are counted per minute, in milliseconds. */
const periodMs = 60_000
/**
 * Minimum time in milliseconds between two loads of an agent, so that an agent that changes constantly is not loaded
 * constantly.
 */
const readIntervalMs = 1_000
/** Maximum number of agents that are counted. */
const maxAgents = 10_000

interface SearchCount {
  readonly since: number
  count: number
  reading: boolean
  /** The earliest time of the next load. */
  after: number
}

export interface HotAgentsOptions {
  /** Number of searches per minute from which an agent is held. */
  readonly often: number
  /** Maximum number of chunks of an agent that is held. */
  readonly largest: number
}

/** The memory that holds agents. */
export interface Memory {
  readonly holds: (agentId: AgentId) => boolean
  /** Loads the agent, or its changes. */
  readonly remember: (agent: AgentScope) => Effect.Effect<void>
  readonly forget: (agentId: AgentId) => void
}

/**
 * To be called for every search that the memory could not answer. Loads a frequently searched agent, or the changes of
 * one that is held.
 */
export const makeHotAgents = ({ forget, holds, remember }: Memory, { largest, often }: HotAgentsOptions) =>
  Effect.map(Effect.scope, (scope) => {
    const agents = new LruCache<SearchCount>()

    const seenOf = (agentId: AgentId, now: number): SearchCount => {
      const before = agents.get(agentId)
      if (before !== undefined && now - before.since < periodMs) return before
      const { after = 0, reading = false } = before ?? {}
      const seen = { since: now, count: 0, reading, after }
      agents.set(agentId, seen)
      agents.trim(maxAgents)
      return seen
    }

    const readNow = (agent: AgentScope, seen: SearchCount) =>
      remember(agent).pipe(
        Effect.catchAllCause((cause) =>
          Effect.logWarning("An agent's chunks could not be read into memory", cause)
        ),
        Effect.zipRight(monotonicMillis),
        Effect.tap((now) =>
          Effect.sync(() => {
            const latest = agents.get(agent.agentId) ?? seen
            latest.reading = false
            latest.after = now + readIntervalMs
          })
        ),
        Effect.withSpan("VectorSearch.remember", { root: true, attributes: { agentId: agent.agentId } }),
        Effect.forkIn(scope)
      )

    return (agent: AgentScope, chunks: number): Effect.Effect<void> =>
      Effect.flatMap(monotonicMillis, (now) => {
        const { agentId } = agent
        if (chunks > largest) return Effect.sync(() => forget(agentId))
        const seen = seenOf(agentId, now)
        seen.count += 1
        const wanted = seen.count >= often || holds(agentId)
        if (!wanted || seen.reading || now < seen.after) return Effect.void
        seen.reading = true
        return Effect.asVoid(readNow(agent, seen))
      })
  })
