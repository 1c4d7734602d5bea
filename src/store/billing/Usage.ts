/** Usage of the current period. It has counters only: deleting a source does not reduce them. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Cost } from "../../domain/billing/Cost.ts"
import { ModelCallKind } from "../../domain/billing/ModelCall.ts"
import { AgentId, minRunIdAt } from "../../domain/Ids.ts"
import type {
  AgentUsage,
  DayUsage,
  DeletedAgentsUsage,
  ModelUsage,
  Usage
} from "../../domain/billing/Usage.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  start: Schema.DateTimeUtcFromDate,
  end: Schema.DateTimeUtcFromDate,
  turnsLimit: Schema.Number,
  ingestionJobsLimit: Schema.Number,
  sourcesLimit: Schema.Number,
  overageEnabled: Schema.Boolean,
  turns: Schema.Number,
  ingestionJobs: Schema.Number,
  sources: Schema.Number,
  input: Schema.Number,
  output: Schema.Number
})

const DeletedAgentsRow = Schema.Struct({
  turns: Schema.Number,
  ingestionJobs: Schema.Number,
  input: Schema.Number,
  output: Schema.Number,
  cost: Cost
})

const AgentRow = Schema.Struct({
  ...DeletedAgentsRow.fields,
  agentId: AgentId,
  name: Schema.String,
  sources: Schema.Number
})

const ModelRow = Schema.Struct({
  model: Schema.String,
  calls: Schema.Number,
  input: Schema.Number,
  cachedInput: Schema.Number,
  output: Schema.Number,
  cost: Cost
})

const DayRow = Schema.Struct({
  date: Schema.String,
  turns: Schema.Number,
  input: Schema.Number,
  output: Schema.Number,
  cost: Cost
})

const KindRow = Schema.Struct({
  kind: ModelCallKind,
  calls: Schema.Number,
  input: Schema.Number,
  output: Schema.Number,
  cost: Cost
})
const DayKindRow = Schema.Struct({ ...KindRow.fields, date: Schema.String })
const AgentKindRow = Schema.Struct({ ...KindRow.fields, agentId: AgentId })

const toUsage = ({ start, end, ...row }: typeof Row.Type): Usage => ({
  period: { start, end },
  turns: { used: row.turns, limit: row.turnsLimit, overageEnabled: row.overageEnabled },
  ingestionJobs: { used: row.ingestionJobs, limit: row.ingestionJobsLimit },
  sources: { active: row.sources, limit: row.sourcesLimit },
  tokens: { input: row.input, output: row.output }
})

const withTokens = <A extends { readonly input: number; readonly output: number }>({
  input,
  output,
  ...row
}: A) => ({ ...row, tokens: { input, output } })

export class UsageStore extends Effect.Service<UsageStore>()("store/billing/Usage", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** A sum is null if none of its calls has a price. */
    const costOf = (known: Fragment, unpriced: Fragment, calls: Fragment) => sql`
      json_build_object(
        'nanoUsd', case when coalesce(${unpriced}, 0) < coalesce(${calls}, 0) or coalesce(${calls}, 0) = 0
          then coalesce(${known}, 0)::bigint end,
        'unpricedCalls', coalesce(${unpriced}, 0)::bigint)`

    const time = (at: DateTime.Utc) => sql`${DateTime.formatIso(at)}::timestamptz`

    const period = sql`
      p.period_start as "start", p.period_end as "end", s.turns_limit::float8 as "turnsLimit",
      s.ingestion_jobs_limit::float8 as "ingestionJobsLimit", s.sources_limit::float8 as "sourcesLimit",
      s.overage_enabled as "overageEnabled"`

    const counters = sql`
      coalesce(u.turns, 0)::float8 as turns, coalesce(u.ingestion_jobs, 0)::float8 as "ingestionJobs"`

    const otherCalls = <A, I>(
      { tenantId }: TenantScope,
      start: DateTime.Utc,
      group: Fragment,
      Row: Schema.Schema<A, I>
    ) =>
      sql`
        select ${group}, sum(calls)::float8 as calls, sum(input_tokens)::float8 as input,
          sum(output_tokens)::float8 as output,
          ${costOf(sql`sum(cost_nano)`, sql`sum(unpriced_calls)`, sql`sum(calls)`)} as cost
        from other_model_usage where tenant_id = ${tenantId} and period_start = ${time(start)}
        group by 1, 2 order by 1, 2`.pipe(Rows.all(Row))

    /** The agent's usage; none when the tenant has no such agent. */
    const ofAgent = ({ agentId, tenantId }: AgentScope) =>
      sql`
        select ${period}, ${counters},
          (select count(*) from sources where tenant_id = a.tenant_id and agent_id = a.id)::float8 as sources,
          coalesce(u.input_tokens, 0)::float8 as input, coalesce(u.output_tokens, 0)::float8 as output
        from agents a join subscriptions s on s.tenant_id = a.tenant_id
        cross join lateral period_of(a.tenant_id) p
        left join agent_usage u on u.tenant_id = a.tenant_id and u.agent_id = a.id and u.period_start = p.period_start
        where a.tenant_id = ${tenantId} and a.id = ${agentId}`.pipe(
        Rows.first(Row),
        Effect.map(Option.map(toUsage)),
        Effect.withSpan("UsageStore.ofAgent")
      )

    /** The tenant's totals; none when there is no such tenant. */
    const ofTenant = ({ tenantId }: TenantScope) =>
      sql`
        select ${period}, ${counters},
          (select count(*) from sources where tenant_id = s.tenant_id)::float8 as sources,
          coalesce(t.input, 0)::float8 as input, coalesce(t.output, 0)::float8 as output
        from subscriptions s cross join lateral period_of(s.tenant_id) p
        left join tenant_usage u on u.tenant_id = s.tenant_id and u.period_start = p.period_start
        left join lateral (
          select sum(g.input_tokens) as input, sum(g.output_tokens) as output
          from agent_usage g
          where g.tenant_id = s.tenant_id and g.period_start = p.period_start
        ) t on true
        where s.tenant_id = ${tenantId}`.pipe(
        Rows.first(Row),
        Effect.map(Option.map(toUsage)),
        Effect.withSpan("UsageStore.ofTenant")
      )

    /** Usage of each agent in the period that begins at `start`, oldest agent first. */
    const byAgent = ({ tenantId }: TenantScope, start: DateTime.Utc) =>
      sql`
        select a.id as "agentId", a.name, ${counters},
          (select count(*) from sources where tenant_id = a.tenant_id and agent_id = a.id)::float8 as sources,
          coalesce(u.input_tokens, 0)::float8 as input, coalesce(u.output_tokens, 0)::float8 as output, m.cost
        from agents a
        left join agent_usage u on u.tenant_id = a.tenant_id and u.agent_id = a.id and u.period_start = ${time(start)}
        cross join lateral (
          select ${costOf(sql`sum(cost_nano)`, sql`sum(unpriced_calls)`, sql`sum(calls)`)} as cost from model_usage
          where tenant_id = a.tenant_id and agent_id = a.id and period_start = ${time(start)}
        ) m
        where a.tenant_id = ${tenantId} order by a.id`.pipe(
        Rows.all(AgentRow),
        Effect.map((rows): ReadonlyArray<Omit<AgentUsage, "otherCalls">> => rows.map(withTokens)),
        Effect.withSpan("UsageStore.byAgent")
      )

    /** What agents that are deleted have used in the period that begins at `start`. */
    const ofDeletedAgents = ({ tenantId }: TenantScope, start: DateTime.Utc) => {
      const used = sql`
        g.tenant_id = ${tenantId} and g.period_start = ${time(start)}
        and not exists (select from agents a where a.tenant_id = g.tenant_id and a.id = g.agent_id)`
      return sql`
        select ${counters}, coalesce(u.input, 0)::float8 as input, coalesce(u.output, 0)::float8 as output, m.cost
        from (
          select sum(turns) as turns, sum(ingestion_jobs) as ingestion_jobs, sum(input_tokens) as input,
            sum(output_tokens) as output
          from agent_usage g where ${used}
        ) u cross join (
          select ${costOf(sql`sum(cost_nano)`, sql`sum(unpriced_calls)`, sql`sum(calls)`)} as cost
          from model_usage g where ${used}
        ) m`.pipe(
        Rows.one(DeletedAgentsRow),
        Effect.map((row): DeletedAgentsUsage => withTokens(row)),
        Effect.withSpan("UsageStore.ofDeletedAgents")
      )
    }

    /** Usage of each model in the period that begins at `start`, the most expensive first. */
    const byModel = ({ tenantId }: TenantScope, start: DateTime.Utc) =>
      sql`
        select model, sum(calls)::float8 as calls, sum(input_tokens)::float8 as input,
          sum(cached_input_tokens)::float8 as "cachedInput", sum(output_tokens)::float8 as output,
          ${costOf(sql`sum(cost_nano)`, sql`sum(unpriced_calls)`, sql`sum(calls)`)} as cost
        from model_usage where tenant_id = ${tenantId} and period_start = ${time(start)}
        group by model order by sum(cost_nano) desc, model`.pipe(
        Rows.all(ModelRow),
        Effect.map((rows) =>
          rows.map(({ cachedInput, input, output, ...row }): ModelUsage => ({
            ...row,
            tokens: { input, cachedInput, output }
          }))
        ),
        Effect.withSpan("UsageStore.byModel")
      )

    /** The days of the period that had answered turns, in order. */
    const byDay = ({ tenantId }: TenantScope, { start, end }: Usage["period"]) =>
      sql`
        select to_char(r.started_at at time zone 'UTC', 'YYYY-MM-DD') as date,
          count(*) filter (where r.status = 'complete')::float8 as turns,
          coalesce(sum(m.input_tokens), 0)::float8 as input, coalesce(sum(m.output_tokens), 0)::float8 as output,
          ${costOf(
            sql`sum(r.cost_nano)`,
            // A run from before costs were stored counts as one unpriced call.
            sql`sum(coalesce(r.unpriced_calls, 1))`,
            sql`sum(coalesce(r.unpriced_calls, 1)) + count(r.cost_nano)`
          )} as cost
        from agents a
        join agent_runs r on r.tenant_id = a.tenant_id and r.agent_id = a.id and r.id >= ${minRunIdAt(start)}
          and (r.status = 'complete' or r.unpriced_calls > 0 or r.cost_nano > 0)
          and r.started_at >= ${time(start)} and r.started_at < ${time(end)}
        left join messages m on m.tenant_id = r.tenant_id and m.id = r.message_id and r.status = 'complete'
        where a.tenant_id = ${opaque(sql, tenantId)} group by 1 order by 1`.pipe(
        Rows.all(DayRow),
        Effect.map((rows): ReadonlyArray<DayUsage> => rows.map(withTokens)),
        Effect.withSpan("UsageStore.byDay")
      )

    /** Calls of models that belong to no turn, in the period that begins at `start`, by kind and day. */
    const otherByDay = (scope: TenantScope, start: DateTime.Utc) =>
      otherCalls(scope, start, sql`kind, to_char(day, 'YYYY-MM-DD') as date`, DayKindRow).pipe(
        Effect.map((rows) => rows.map(withTokens)),
        Effect.withSpan("UsageStore.otherByDay")
      )

    /** The same by agent and kind. */
    const otherByAgent = (scope: TenantScope, start: DateTime.Utc) =>
      otherCalls(scope, start, sql`agent_id as "agentId", kind`, AgentKindRow).pipe(
        Effect.map((rows) => rows.map(withTokens)),
        Effect.withSpan("UsageStore.otherByAgent")
      )

    return { otherByAgent, otherByDay, ofAgent, ofTenant, ofDeletedAgents, byAgent, byModel, byDay } as const
  })
}) {}
