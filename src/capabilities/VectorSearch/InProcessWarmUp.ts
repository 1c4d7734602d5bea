/**
 * Loads the busiest agents when the server starts: first those with the most turns in this period and the last, then
 * those whose keys were used last, for callers that only retrieve. Both are recorded anyway.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { Agents } from "./InProcessAgents.ts"

/** Maximum number of agents that are looked up. Usually the memory is full, or the time is over, before. */
const maxAgents = 200
/**
 * Share of the memory that is filled. The rest is for agents that are searched meanwhile, so that they do not evict
 * these.
 */
const memoryShare = 0.8
/** Number of agents that are loaded at the same time. */
const maxConcurrentAgents = 2

export interface WarmUpOptions {
  /** Memory for all agents, in bytes. */
  readonly maxBytes: number
  /** Time after which the server is ready. Loading continues after it. */
  readonly timeout: Duration.DurationInput
}

const busiest = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<AgentScope>`/* every tenant: sweep */
    with asked as (
      (select tenant_id, agent_id, sum(turns) as turns, null::timestamptz as used from agent_usage
        where period_start > now() - interval '62 days' and turns > 0
        group by tenant_id, agent_id order by sum(turns) desc limit ${maxAgents}::int)
      union all
      (select tenant_id, agent_id, 0, max(last_used_at) from api_keys
        where last_used_at > now() - interval '7 days' and agent_id is not null
        group by tenant_id, agent_id order by max(last_used_at) desc limit ${maxAgents}::int)
    )
    select a.id as "agentId", a.tenant_id as "tenantId"
    from asked join agents a on a.tenant_id = asked.tenant_id and a.id = asked.agent_id
    join agent_stats s on s.tenant_id = a.tenant_id and s.agent_id = a.id
    where s.chunk_count > 0
    group by a.id, a.tenant_id order by sum(turns) desc, max(used) desc nulls last, a.id limit ${maxAgents}::int`
)

/**
 * Starts loading, for the life of the scope. Returns whether the server is warm. A failure is logged and counts as
 * warm.
 */
export const warmUp = (agents: Agents, { maxBytes, timeout }: WarmUpOptions) =>
  Effect.gen(function* () {
    const warm = yield* Ref.make(false)
    const read = (scope: AgentScope) =>
      Effect.suspend(() => (agents.bytes() > memoryShare * maxBytes ? Effect.void : agents.readWhole(scope)))
    const all = Effect.flatMap(busiest, (scopes) =>
      Effect.forEach(scopes, read, { concurrency: maxConcurrentAgents, discard: true })
    )
    yield* all.pipe(
      Effect.catchAllCause((cause) =>
        Effect.logWarning("The busiest agents could not be read into memory", cause)
      ),
      Effect.zipRight(Ref.set(warm, true)),
      Effect.withSpan("VectorSearch.warmUp", { root: true }),
      Effect.forkScoped
    )
    yield* Effect.forkScoped(Effect.delay(Ref.set(warm, true), timeout))
    return Ref.get(warm)
  })
