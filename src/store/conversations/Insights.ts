/** Turns that went wrong, the vectors of their questions, and measures of all turns of a period. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Masking } from "../../domain/agents/Masking.ts"
import { AgentId, ConversationId, minRunIdAt, RunId, SourceId } from "../../domain/Ids.ts"
import type { MeasuredBy } from "../../domain/conversations/Insights.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** A period, `from` inclusive and `to` exclusive, of one agent or of all. */
export interface ReportScope extends TenantScope {
  readonly agentId: AgentId | undefined
  readonly from: DateTime.Utc
  readonly to: DateTime.Utc
}

const FailedTurnRow = Schema.Struct({
  runId: RunId,
  agentId: AgentId,
  /** The agent's current setting. */
  masking: Schema.NullOr(Masking),
  conversationId: ConversationId,
  endUserId: Schema.String,
  question: Schema.String,
  at: Schema.DateTimeUtcFromDate,
  failed: Schema.Boolean,
  unanswered: Schema.Boolean,
  handedOver: Schema.Boolean,
  stopped: Schema.Boolean,
  thumbsDown: Schema.Boolean,
  /** Little-endian floats of the requested profile; null if there is no vector yet. */
  embedding: Schema.NullOr(Schema.Uint8ArrayFromSelf)
})
export type FailedTurnRow = typeof FailedTurnRow.Type

const SearchedRow = Schema.Struct({ runId: RunId, id: SourceId, name: Schema.String })
const SourceRow = Schema.Struct({ agentId: AgentId, id: SourceId, name: Schema.String })

const MeasuresRow = Schema.Struct({
  key: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  isTotal: Schema.Boolean,
  turns: Schema.Number,
  people: Schema.Number,
  answered: Schema.Number,
  refused: Schema.Number,
  handedOver: Schema.Number,
  stopped: Schema.Number,
  failed: Schema.Number,
  repeated: Schema.Number,
  up: Schema.Number,
  down: Schema.Number,
  resolved: Schema.Number,
  /** Median and 95th percentile. */
  firstText: Schema.NullOr(Schema.Array(Schema.Number)),
  settle: Schema.NullOr(Schema.Array(Schema.Number)),
  input: Schema.Number,
  output: Schema.Number,
  /** Billionths of a US dollar; null if no turn has a known cost. */
  cost: Schema.NullOr(Schema.Number),
  unpricedCalls: Schema.Number,
  /** Checked citations by result. */
  supported: Schema.Number,
  partly: Schema.Number,
  unsupported: Schema.Number
})
export type MeasuresRow = typeof MeasuresRow.Type

/** Maximum number of characters of a question that are used. */
export const maxQuestionLength = 1_000
/** Number of characters that are read beyond that, so that masking sees the whole of a value that the limit cuts. */
const maxValueLength = 512
/** Maximum number of sources of one agent that a report names. */
const maxSourcesPerAgent = 50
/** Maximum number of rows of one report of measures, without the total. */
export const maxMeasuresRows = 500
/** A question that is asked again within this time counts as not resolved. */
const repeatWindowMillis = 86_400_000

const base64 = (vector: Float32Array): string =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64")

export class InsightStore extends Effect.Service<InsightStore>()("store/conversations/Insights", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Excludes test conversations of the team. */
    const isOfCustomer = sql`c.channel <> 'test'`

    /** The newest `limit` turns that went wrong, newest first. */
    const failedTurns = ({ agentId, from, tenantId, to }: ReportScope, profile: string, limit: number) =>
      sql`
        select r.id as "runId", r.agent_id as "agentId", (select a.masking from agents a
            where a.tenant_id = r.tenant_id and a.id = r.agent_id) as masking, r.conversation_id as "conversationId",
          c.end_user_id as "endUserId", left(r.user_message, ${maxQuestionLength + maxValueLength}::int) as question,
          r.started_at as at, r.status = 'failed' and not r.handed_over and not r.stopped as failed,
          r.unanswered, r.handed_over as "handedOver", r.stopped, coalesce(r.rating = -1, false) as "thumbsDown",
          v.embedding
        from agent_runs r join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id
        left join question_vectors v on v.tenant_id = r.tenant_id and v.run_id = r.id and v.profile = ${profile}
        where r.tenant_id = ${opaque(sql, tenantId)} and r.id >= ${minRunIdAt(from)} and r.id < ${minRunIdAt(to)}
          and (r.status = 'failed' or r.unanswered or r.handed_over or r.stopped or r.rating = -1)
          and ${isOfCustomer} ${agentId === undefined ? sql`` : sql`and r.agent_id = ${agentId}`}
        order by r.id desc limit ${limit}`.pipe(
        Rows.all(FailedTurnRow),
        Effect.withSpan("InsightStore.failedTurns")
      )

    /** Stores vectors of questions. Runs that no longer exist are ignored. */
    const addVectors = (
      { tenantId }: TenantScope,
      profile: string,
      vectors: ReadonlyArray<{ readonly runId: RunId; readonly vector: Float32Array }>
    ) => {
      const rows = vectors.map(({ runId, vector }) => ({ id: runId, embedding: base64(vector) }))
      return sql`
        with held as (
          select r.tenant_id, r.id, v.embedding from jsonb_to_recordset(${toJsonb(rows)}::jsonb) as v (id text, embedding text)
          join agent_runs r on r.id = v.id and r.tenant_id = ${opaque(sql, tenantId)}
          order by r.id for key share of r
        )
        insert into question_vectors (tenant_id, run_id, profile, embedding)
        select tenant_id, id, ${profile}, decode(embedding, 'base64') from held
        on conflict (tenant_id, run_id) do update set profile = excluded.profile, embedding = excluded.embedding`.pipe(
        Rows.none,
        Effect.withSpan("InsightStore.addVectors")
      )
    }

    /** The sources in which the searches of `runIds` found something. */
    const searchedSources = ({ tenantId }: TenantScope, runIds: ReadonlyArray<RunId>) =>
      sql`
        select distinct e.run_id as "runId", s.id, s.name
        from agent_run_events e
        join agent_runs r on r.id = e.run_id and r.tenant_id = e.tenant_id
        cross join lateral jsonb_path_query(e.payload, '$.chunks[*].sourceId') found (id)
        join sources s on s.id = found.id #>> '{}' and s.tenant_id = e.tenant_id
        where e.tenant_id = ${opaque(sql, tenantId)} and e.run_id = any(${[...runIds]}::text[]) and e.type = 'retrieval.completed'
        order by 1, 2`.pipe(Rows.all(SearchedRow), Effect.withSpan("InsightStore.searchedSources"))

    /** The oldest sources of each agent. */
    const sourcesOf = ({ tenantId }: TenantScope, agentIds: ReadonlyArray<AgentId>) =>
      sql`
        select s.agent_id as "agentId", s.id, s.name from unnest(${[...agentIds]}::text[]) a (id)
        cross join lateral (
          select * from sources s where s.tenant_id = ${tenantId} and s.agent_id = a.id
          order by s.id limit ${maxSourcesPerAgent}
        ) s`.pipe(Rows.all(SourceRow), Effect.withSpan("InsightStore.sourcesOf"))

    const keyExpressions: Record<MeasuredBy, ReturnType<typeof sql.literal>> = {
      day: sql.literal(`to_char(t.started_at at time zone 'UTC', 'YYYY-MM-DD')`),
      agent: sql.literal("t.agent_id"),
      channel: sql.literal("t.channel"),
      version: sql.literal("t.agent_version"),
      language: sql.literal("coalesce(t.language, 'unknown')")
    }

    /**
     * One total, and one row for each value of `by` that had turns, in order, up to one more than a report includes.
     * Only ended turns count. A turn from before costs were stored counts as one unpriced call, as in the usage.
     */
    const measures = ({ agentId, from, tenantId, to }: ReportScope, by: MeasuredBy) =>
      sql`
        with asked as (
          select r.tenant_id, r.id, r.agent_id, a.name, c.channel, c.end_user_id, r.status, r.unanswered, r.handed_over, r.stopped,
            r.rating, r.agent_version, r.language, r.first_text_ms, r.started_at, r.completed_at, r.message_id,
            r.cost_nano, r.unpriced_calls,
            lead(r.started_at) over (
              partition by r.agent_id, c.end_user_id,
                md5(lower(regexp_replace(btrim(left(r.user_message, ${maxQuestionLength}::int)), '\\s+', ' ', 'g')))
              order by r.id
            ) as again
          from agents a
          join agent_runs r on r.tenant_id = a.tenant_id and r.agent_id = a.id and r.status <> 'running'
            and r.id >= ${minRunIdAt(from)} and r.id < ${minRunIdAt(to, repeatWindowMillis)}
          join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id and ${isOfCustomer}
          where a.tenant_id = ${opaque(sql, tenantId)} ${agentId === undefined ? sql`` : sql`and a.id = ${agentId}`}
        ),
        t as (
          select asked.*, coalesce(again < started_at + interval '1 day', false) as repeated,
            status = 'complete' and not unanswered as answered,
            status = 'complete' or unpriced_calls > 0 or cost_nano > 0 as billed,
            round(extract(epoch from completed_at - started_at) * 1000)::int as settle_ms
          from asked where id < ${minRunIdAt(to)}
        )
        select ${keyExpressions[by]}::text as key, max(t.name) as name, grouping(${keyExpressions[by]}) = 1 as "isTotal",
          count(*)::float8 as turns, count(distinct t.end_user_id)::float8 as people,
          count(*) filter (where t.answered)::float8 as answered,
          count(*) filter (where t.unanswered)::float8 as refused,
          count(*) filter (where t.handed_over)::float8 as "handedOver",
          count(*) filter (where t.stopped)::float8 as stopped,
          count(*) filter (where t.status = 'failed' and not t.handed_over and not t.stopped)::float8 as failed,
          count(*) filter (where t.repeated)::float8 as repeated,
          count(*) filter (where t.rating = 1)::float8 as up, count(*) filter (where t.rating = -1)::float8 as down,
          count(*) filter (
            where t.answered and not t.handed_over and t.rating is distinct from -1 and not t.repeated
          )::float8 as resolved,
          percentile_disc(array[0.5, 0.95]) within group (order by t.first_text_ms) as "firstText",
          percentile_disc(array[0.5, 0.95]) within group (order by t.settle_ms)
            filter (where t.status = 'complete') as settle,
          coalesce(sum(m.input_tokens), 0)::float8 as input, coalesce(sum(m.output_tokens), 0)::float8 as output,
          sum(t.cost_nano) filter (where t.billed)::float8 as cost,
          coalesce(sum(coalesce(t.unpriced_calls, 1)) filter (where t.billed), 0)::float8 as "unpricedCalls",
          coalesce(sum(g.supported), 0)::float8 as supported, coalesce(sum(g.partly), 0)::float8 as partly,
          coalesce(sum(g.unsupported), 0)::float8 as unsupported
        from t left join messages m on m.tenant_id = t.tenant_id and m.id = t.message_id and t.status = 'complete'
        cross join lateral (
          select count(*) filter (where result = '"yes"') as supported,
            count(*) filter (where result = '"partly"') as partly, count(*) filter (where result = '"no"') as unsupported
          from jsonb_path_query(m.citations, '$[*].supported') result
        ) g
        group by grouping sets ((${keyExpressions[by]}), ())
        order by "isTotal" desc, ${keyExpressions[by]} limit ${maxMeasuresRows + 2}`.pipe(
        Rows.all(MeasuresRow),
        Effect.withSpan("InsightStore.measures")
      )

    /** True when the tenant has the agent. */
    const hasAgent = ({ tenantId }: TenantScope, agentId: AgentId) =>
      sql`select id from agents where tenant_id = ${tenantId} and id = ${agentId}`.pipe(
        Rows.first(Schema.Struct({ id: AgentId })),
        Effect.map(Option.isSome)
      )

    return { failedTurns, addVectors, searchedSources, sourcesOf, measures, hasAgent } as const
  })
}) {}
