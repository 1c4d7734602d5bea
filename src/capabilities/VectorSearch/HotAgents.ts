/** Which agents are worth their memory: those that are searched often. They are read in the background. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { monotonicMillis } from "../../domain/Elapsed.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { LruCache } from "./LruCache.ts"

/** Searches are counted over a minute. */
const period = 60_000
/** Milliseconds from the end of one reading of an agent to the next: one that changes all the time is not read all the time. */
const readIntervalMs = 1_000
/** Agents that are counted. */
const maxAgents = 10_000

interface Seen {
  readonly since: number
  count: number
  reading: boolean
  /** The time from which it may be read again. */
  after: number
}

export interface HotAgentsOptions {
  /** Searches within a minute. */
  readonly often: number
  /** Chunks that an agent may have. */
  readonly largest: number
}

/** The memory that agents are held in. */
export interface Memory {
  readonly holds: (agentId: AgentId) => boolean
  /** Reads the agent, or what has changed of it. */
  readonly remember: (agent: AgentScope) => Effect.Effect<void>
  readonly forget: (agentId: AgentId) => void
}

/**
 * To be told of every search that the memory could not answer: has the agent read when it is asked often, and what has
 * changed of one that is held.
 */
export const makeHotAgents = ({ forget, holds, remember }: Memory, { largest, often }: HotAgentsOptions) =>
  Effect.map(Effect.scope, (scope) => {
    const agents = new LruCache<Seen>()

    const seenOf = (agentId: AgentId, now: number): Seen => {
      const before = agents.use(agentId)
      if (before !== undefined && now - before.since < period) return before
      const { after = 0, reading = false } = before ?? {}
      const seen = { since: now, count: 0, reading, after }
      agents.put(agentId, seen)
      agents.keep(maxAgents)
      return seen
    }

    const readNow = (agent: AgentScope, seen: Seen) =>
      remember(agent).pipe(
        Effect.catchAllCause((cause) =>
          Effect.logWarning("An agent's chunks could not be read into memory", cause)
        ),
        Effect.zipRight(monotonicMillis),
        Effect.tap((now) =>
          Effect.sync(() => {
            const latest = agents.use(agent.agentId) ?? seen
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
