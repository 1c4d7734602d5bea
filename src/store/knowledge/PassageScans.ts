/** The progress of the search for contradicting, repeated and stale passages, and the agents that are searched next. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { AgentId, TenantId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of findings of each kind of an agent that are not dismissed. */
export const maxFindings = 500
/** The same with those that were dismissed. */
export const maxStoredFindings = 5_000

/** Progress of the search in an agent. */
const Scan = Schema.Struct({
  tenantId: TenantId,
  agentId: AgentId,
  /** The position: after the chunk `chunkId` among those that went live with `version`. */
  version: Schema.String,
  chunkId: Schema.String,
  /** Whether unchanged pages have to be checked. */
  staleIsDue: Schema.Boolean
})
export type Scan = typeof Scan.Type

/**
 * Must be called before chunks are removed from search; `condition` selects these chunks `c`. Starts the agent's search
 * again if no more findings of a kind of theirs could be stored, because other findings may have been dropped.
 */
export const restartScanIfFull = (
  sql: SqlClient.SqlClient,
  { agentId, tenantId }: AgentScope,
  condition: Fragment
) =>
  sql`
    update passage_scans set version = 0, chunk_id = ''
    where tenant_id = ${tenantId} and agent_id = ${agentId} and exists (
      select from passage_findings f
      join chunks c on c.tenant_id = f.tenant_id and c.id in (f.chunk_id, f.other_chunk_id)
      where f.tenant_id = ${tenantId} and f.agent_id = ${agentId} and ${condition} and f.kind in (
        select k.kind from passage_findings k
        where k.tenant_id = ${tenantId} and k.agent_id = ${agentId} and k.kind <> 'stale' group by k.kind
        having count(*) filter (where k.dismissed_at is null) >= ${maxFindings} or count(*) >= ${maxStoredFindings}
      )
    )`.pipe(Rows.none)

export const scansOf = (sql: SqlClient.SqlClient) => {
  const isDue = sql`s.chunk_count > 0 and (p.agent_id is null or p.version < s.version
    or p.stale_at is null or p.stale_at < now() - interval '1 day')`

  /**
   * Agents with passages to compare, at most `limit`. Tenants take turns: the first agent of each tenant comes before
   * any second one, and among the first ones, that of the tenant which has waited longest. Reads a row of every agent,
   * so a sweep calls it once.
   */
  const due = (limit: number) =>
    sql`/* every tenant: sweep */
      select tenant_id as "tenantId", agent_id as "agentId" from (
        select s.tenant_id, s.agent_id, p.touched_at,
          row_number() over (partition by s.tenant_id order by p.touched_at nulls first, s.agent_id) as place
        from agent_stats s left join passage_scans p on p.tenant_id = s.tenant_id and p.agent_id = s.agent_id
        where ${isDue} and tenant_is_swept(s.tenant_id)
      ) agents
      order by place, (select max(q.touched_at) from passage_scans q where q.tenant_id = agents.tenant_id) nulls first,
        touched_at nulls first, tenant_id, agent_id limit ${limit}`.pipe(
      Rows.all(Schema.Struct({ tenantId: TenantId, agentId: AgentId })),
      Effect.withSpan("FindingStore.due")
    )

  /** Claims the agent and locks its scan. None when it has nothing to do, or another process compares passages. */
  const claim = ({ agentId, tenantId }: AgentScope) =>
    sql`
      with taken as (select pg_try_advisory_xact_lock(hashtextextended('passage findings', 0)) as it)
      insert into passage_scans as p (tenant_id, agent_id, touched_at)
      select s.tenant_id, s.agent_id, clock_timestamp()
      from taken, agent_stats s left join passage_scans p on p.tenant_id = s.tenant_id and p.agent_id = s.agent_id
      where taken.it and s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and ${isDue}
      on conflict (tenant_id, agent_id) do update set touched_at = excluded.touched_at
      returning p.tenant_id as "tenantId", p.agent_id as "agentId", p.version::text as version, p.chunk_id as "chunkId",
        p.stale_at is null or p.stale_at < now() - interval '1 day' as "staleIsDue"`.pipe(
      Rows.first(Scan),
      Effect.withSpan("FindingStore.claim")
    )

  return { due, claim } as const
}
