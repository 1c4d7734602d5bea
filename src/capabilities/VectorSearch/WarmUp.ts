/**
 * What the server does when it starts, so that the first searches take no longer than later ones. It prepares the
 * embedder, and loads the busiest agents: first those with the most turns in this period and the last, then those whose
 * keys were used last, for callers that only retrieve. Turns and uses of keys are recorded anyway.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { Embedder } from "../Embedder.ts"
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
  /**
   * Whether the embedder is prepared, if an agent is searched with it; default: false. The server is ready about a second
   * later.
   */
  readonly prepareEmbedder?: boolean | undefined
  /** Time after which the server counts as warm; default: 30 seconds. The work continues after it. */
  readonly warmUpTimeout?: Duration.DurationInput | undefined
}

const selectBusiest = Effect.flatMap(
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

/** Fills `memoryShare` of `maxBytes`. A failure is logged. */
export const loadBusiest = (agents: Agents, maxBytes: number) => {
  const read = (scope: AgentScope) =>
    Effect.suspend(() => (agents.bytes() > memoryShare * maxBytes ? Effect.void : agents.loadFully(scope)))
  return Effect.flatMap(selectBusiest, (scopes) =>
    Effect.forEach(scopes, read, { concurrency: maxConcurrentAgents, discard: true })
  ).pipe(
    Effect.catchAllCause((cause) =>
      Effect.logWarning("The busiest agents could not be read into memory", cause)
    )
  )
}

/** Prepares the embedder if an agent is searched with it. A failure is logged. */
const prepareEmbedder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { prepare, profile } = yield* Embedder
  if (prepare === undefined) return
  const searched = yield* sql`/* every tenant: sweep */
    select 1 from agent_stats where profile = ${profile} and chunk_count > 0 limit 1`
  if (searched.length > 0) yield* prepare
}).pipe(
  Effect.catchAllCause((cause) => Effect.logWarning("The embedding model could not be prepared", cause))
)

/** Starts `load` and the preparation, for the life of the scope. Returns whether both have ended. */
export const warmUp = <R>(
  load: Effect.Effect<void, never, R>,
  { prepareEmbedder: shouldPrepare = false, warmUpTimeout = "30 seconds" }: WarmUpOptions
) =>
  Effect.gen(function* () {
    const warm = yield* Ref.make(false)
    yield* Effect.all([shouldPrepare ? prepareEmbedder : Effect.void, load], { concurrency: 2 }).pipe(
      Effect.zipRight(Ref.set(warm, true)),
      Effect.withSpan("VectorSearch.warmUp", { root: true }),
      Effect.forkScoped
    )
    yield* Effect.forkScoped(Effect.delay(Ref.set(warm, true), warmUpTimeout))
    return Ref.get(warm)
  })
