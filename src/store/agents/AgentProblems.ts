/** Current problems of a tenant's agents, from the health of its channels and the traces of its last turns. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentProblem } from "../../domain/agents/AgentProblem.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of problems in an answer. */
const maxProblems = 100
/** Maximum number of ended turns of an agent that are checked for failures of its model and its tools. */
const maxRuns = 20
/** Older turns are not checked. */
const maxAgeDays = 7

const Row = Schema.Struct({ ...AgentProblem.fields, since: Schema.DateTimeUtcFromDate })

export const makeAgentProblems = Effect.map(SqlClient.SqlClient, (sql) => {
  /** Longest first. */
  const list = ({ tenantId }: TenantScope) =>
    sql`
      with recent_runs as (
        select a.id as agent_id, r.id, r.status, r.at, r.code, r.provider
        from agents a cross join lateral (
          select l.id, l.status, coalesce(l.completed_at, l.started_at) as at, e.code, e.provider
          from agent_runs l left join lateral (
            select f.payload ->> 'code' as code, f.payload ->> 'provider' as provider from agent_run_events f
            where l.status = 'failed' and f.tenant_id = l.tenant_id and f.run_id = l.id and f.type = 'run.failed' limit 1
          ) e on true
          where l.tenant_id = a.tenant_id and l.agent_id = a.id and l.status <> 'running'
            and l.started_at > now() - make_interval(days => ${maxAgeDays}::int)
            and coalesce(e.code, '') <> 'TAKEN_OVER'
          order by l.id desc limit ${maxRuns}
        ) r
        where a.tenant_id = ${opaque(sql, tenantId)}
      ),
      failed_models as (
        select f.agent_id, min(f.at) as since, (array_agg(coalesce(f.provider, f.code) order by f.id desc))[1] as reason
        from recent_runs f
        where not exists (select from recent_runs later where later.agent_id = f.agent_id and later.id >= f.id and later.status <> 'failed')
        group by f.agent_id
      ),
      recent_calls as (
        select r.agent_id, e.payload ->> 'tool' as name, e.payload ->> 'message' as message, e.at,
          e.type = 'tool.failed' and e.payload ->> 'code' in ('TOOL_FAILED', 'TOOL_TIMEOUT') as failed
        from recent_runs r join agent_run_events e
          on e.tenant_id = ${opaque(sql, tenantId)} and e.run_id = r.id and e.type in ('tool.completed', 'tool.failed')
      ),
      failed_tools as (
        select c.agent_id, c.name, min(c.at) as since, (array_agg(c.message order by c.at desc))[1] as reason
        from recent_calls c
        where c.name is not null and not exists (
          select from recent_calls later
          where later.agent_id = c.agent_id and later.name = c.name and later.at >= c.at and not later.failed
        )
        group by c.agent_id, c.name
      ),
      problems as (
        select c.agent_id, 'channel' as kind, c.id as target, c.channel || ':' || c.external_id as name,
          c.failing_since as since, (
            select o.last_error from channel_outbox o
            where o.tenant_id = c.tenant_id and o.channel_id = c.id and o.last_error is not null
              and o.created_at > c.failing_since - interval '1 day'
            order by o.id desc limit 1
          ) as reason
        from channels c
        where c.tenant_id = ${tenantId} and c.active and c.failing_since is not null
        union all
        select agent_id, 'model', null, null, since, reason from failed_models
        union all
        select agent_id, 'tool', name, name, since, reason from failed_tools
      )
      select p.agent_id as "agentId", a.name as "agentName", p.kind, p.target, p.name, p.since, p.reason
      from problems p join agents a on a.tenant_id = ${tenantId} and a.id = p.agent_id
      order by p.since, p.agent_id, p.name limit ${maxProblems}`.pipe(
      Rows.all(Row),
      Effect.withSpan("AgentProblems.list")
    )

  return { list } as const
})
