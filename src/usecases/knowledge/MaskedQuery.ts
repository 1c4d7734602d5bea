/** The query of a search outside of turns. */
import * as Effect from "effect/Effect"
import { LruCache } from "../../concurrency/LruCache.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { Agent } from "../../domain/agents/Agent.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { Masking } from "../chat/masking/Masking.ts"

/** Longest time in milliseconds until a search follows a change of the setting. Without it each search reads a row. */
const maxSettingAgeMs = 1_000
/** Maximum number of agents whose setting is known. */
const maxAgents = 1_000

interface Known {
  readonly masking: Agent["masking"]
  readonly until: number
}

/**
 * Returns the text without the values that the agent masks, as a turn searches for it: embedding and ranking may call an
 * outside provider.
 */
export const makeMaskedQuery = Effect.map(AgentStore, (agents) => {
  const known = new LruCache<Known>()
  return Effect.fnUntraced(function* (scope: AgentScope, text: string) {
    const now = yield* monotonicMillis
    const key = `${scope.tenantId} ${scope.agentId}`
    let setting = known.get(key)
    if (setting === undefined || setting.until <= now) {
      setting = { masking: yield* agents.maskingOf(scope), until: now + maxSettingAgeMs }
      known.set(key, setting)
      known.trim(maxAgents)
    }
    return setting.masking === null ? text : new Masking(setting.masking).searchable(text)
  })
})
