/** Reading, following and stopping runs. store/chat/Turns starts and settles them. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { forTenants } from "../../concurrency/TenantSession.ts"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { RunEvent, RunStatus, RunTrace } from "../../domain/chat/AgentRun.ts"
import { Citation } from "../../domain/chat/ChatTurn.ts"
import type { ChatId } from "../../domain/chat/UiChat.ts"
import { EndUserId, RunId } from "../../domain/Ids.ts"
import { isOfChat } from "./Chats.ts"
import { readableUnder } from "../knowledge/SourceScopeColumns.ts"
import { mayBeOfVisitor } from "./Visitors.ts"
import { passagesOf } from "./RunPassages.ts"
import { encodeEvents } from "./TurnSettlement.ts"
import { orUnstorable } from "../Unstorable.ts"
import { isoTime } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of events of one run that are replayed. A turn usually has fewer than ten. */
const maxReplayedEvents = 1_000

const Trace = Schema.Struct({
  ...Schema.Struct(RunTrace.fields).omit("hasMore", "nextCursor").fields,
  startedAt: Schema.DateTimeUtcFromDate,
  completedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

/** The state of a run, with everything that a replay of its stream needs. */
const Outcome = Schema.Struct({
  ...Trace.pick("status", "conversationId", "events").fields,
  /** True while earlier turns of the conversation run, and for a running turn that a human has taken over. */
  waits: Schema.Boolean,
  /** Null for a turn of an existing conversation, whose result does not contain the end user. */
  endUserId: Schema.NullOr(EndUserId),
  /** Null unless the run is complete. */
  reply: Schema.NullOr(Schema.String),
  citations: Schema.NullOr(Schema.Array(Citation))
})
export type Outcome = typeof Outcome.Type

/** Events of one run. */
export interface RunEvents {
  readonly scope: AgentScope
  readonly runId: RunId
  readonly events: ReadonlyArray<RunEvent>
}

const Status = Schema.Struct({ status: RunStatus })
const Named = Schema.Struct({ id: RunId })

/** Keeps the runs until the transaction ends. False if one of them does not exist, or was erased with its person. */
export const lockRuns = (
  sql: SqlClient.SqlClient,
  { tenantId }: TenantScope,
  ids: ReadonlySet<RunId>
): Effect.Effect<boolean, SqlError> =>
  ids.size === 0
    ? Effect.succeed(true)
    : Effect.map(
        sql`select 1 from agent_runs where tenant_id = ${tenantId} and id in ${sql.in([...ids])} for key share`,
        (rows) => rows.length === ids.size
      )

export class AgentRunStore extends Effect.Service<AgentRunStore>()("store/chat/AgentRuns", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** A scope that reads the conversation of the run `r` reads the run. Runs of channels have scopes of their own. */
    const isReadable = (scope: ReadScope) =>
      scope.sourceScope === null
        ? sql`true`
        : sql`exists (
            select from conversations c
            where c.tenant_id = r.tenant_id and c.id = r.conversation_id and ${readableUnder(sql, scope, "c.source_scope")}
          )`

    const ownRun = (scope: ReadScope, id: RunId) =>
      sql`r.tenant_id = ${scope.tenantId} and r.agent_id = ${scope.agentId} and r.id = ${id}
        and ${isReadable(scope)} and ${mayBeOfVisitor(sql, scope, sql`r.conversation_id`)}`

    /** Events of the run `r` after `after`, as JSON, in order. With its id as a value, the planner reads one week. */
    const eventsAfter = (id: RunId, after: number, limit: number) => sql`
      select coalesce(jsonb_agg(
        jsonb_build_object(
          'id', e.run_id || ':' || e.sequence, 'runId', e.run_id, 'sequence', e.sequence, 'type', e.type,
          'status', e.status, 'label', e.label,
          'timestamp', ${isoTime(sql, sql`e.at`)}
        ) || case when e.payload is null then '{}' else jsonb_build_object('payload', e.payload) end
        order by e.sequence
      ), '[]')
      from (
        select * from agent_run_events where tenant_id = r.tenant_id and run_id = ${id} and sequence > ${after}::bigint
        order by sequence limit ${limit}
      ) e`

    /** One page of the trace, or none when the agent has no such run. */
    const trace = Effect.fn("AgentRunStore.trace")(function* (
      scope: ReadScope,
      id: RunId,
      page: { readonly after: number; readonly limit: number }
    ) {
      const found = yield* sql`
        select r.id, r.status, r.conversation_id as "conversationId", r.message_id as "messageId",
          r.agent_version as "agentVersion",
          case when r.unpriced_calls is not null then
            json_build_object('nanoUsd', r.cost_nano, 'unpricedCalls', r.unpriced_calls) end as cost,
          r.started_at as "startedAt", r.completed_at as "completedAt",
          (${eventsAfter(id, page.after, page.limit + 1)}) as events, (${passagesOf(sql, sql`${id}`)}) as passages
        from agent_runs r where ${ownRun(scope, id)}`.pipe(Rows.first(Trace))
      return Option.map(found, ({ events, ...run }): RunTrace => {
        const shown = events.slice(0, page.limit)
        const hasMore = events.length > page.limit
        return { ...run, events: shown, hasMore, nextCursor: hasMore ? `${shown.at(-1)?.sequence}` : null }
      })
    }, Effect.orDie)

    /** None when the agent has no such run. */
    const outcome = (scope: ReadScope, id: RunId) =>
      sql`
        select r.status, r.conversation_id as "conversationId",
          r.status = 'running' and (c.state <> 'AI_ACTIVE' or c.epoch <> r.epoch or exists (
            select 1 from agent_runs e
            where e.tenant_id = r.tenant_id and e.conversation_id = r.conversation_id and e.ticket < r.ticket and e.status = 'running'
          )) as waits,
          case when r.ticket = 1 and c.import_key is null then c.end_user_id end as "endUserId",
          m.content as reply, m.citations, (${eventsAfter(id, 0, maxReplayedEvents)}) as events
        from agent_runs r
        left join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id
        left join messages m on m.tenant_id = r.tenant_id and m.id = r.message_id and r.status = 'complete'
        where ${ownRun(scope, id)}`.pipe(Rows.first(Outcome), Effect.withSpan("AgentRunStore.outcome"))

    /** None when the agent has no such run. */
    const status = (scope: ReadScope, id: RunId) =>
      sql`select r.status from agent_runs r where ${ownRun(scope, id)}`.pipe(
        Rows.first(Status),
        Effect.map(Option.map((row) => row.status)),
        Effect.withSpan("AgentRunStore.status")
      )

    /** The run of the chat's newest turn, if that is under way. */
    const runningOf = (scope: ReadScope, id: ChatId) =>
      sql`
        select r.id from conversations c join agent_runs r on r.tenant_id = c.tenant_id and r.conversation_id = c.id
        where ${isOfChat(sql, scope, id)} and r.status = 'running' order by r.ticket desc limit 1`.pipe(
        Rows.first(Named),
        Effect.map(Option.map((row) => row.id)),
        Effect.withSpan("AgentRunStore.runningOf")
      )

    /** Requests the stop of a run from the process that runs it. No effect on a settled run. */
    const requestStop = (scope: ReadScope, id: RunId) =>
      sql`update agent_runs r set stop_requested = true where ${ownRun(scope, id)} and r.status = 'running'`.pipe(
        Rows.none,
        Effect.withSpan("AgentRunStore.requestStop")
      )

    /** Runs of this process that were asked to stop. */
    const toStop = (instanceId: string) =>
      sql`/* every tenant: sweep */
        select id from agent_runs where instance_id = ${instanceId} and status = 'running' and stop_requested`.pipe(
        Rows.all(Named),
        Effect.map((rows) => rows.map(({ id }) => id)),
        Effect.withSpan("AgentRunStore.toStop")
      )

    /**
     * Stores events of running runs, each once, also under concurrent writers. The runs are locked before the first
     * event is written, in the same order as when settling, to avoid deadlocks. Fails when an event has content that
     * cannot be stored.
     */
    const flush = (runs: ReadonlyArray<RunEvents>) =>
      Effect.suspend(
        () => sql`
        with running as (
          select tenant_id, id from agent_runs
          where status = 'running' and (tenant_id, id) in (
            select * from unnest(
              ${runs.map(({ scope }) => scope.tenantId)}::text[], ${runs.map(({ runId }) => runId)}::text[])
          )
          order by id for key share
        )
        insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
        select r.tenant_id, r.id, e.sequence, e.type, e.status, e.label, e.payload, e.timestamp
        from jsonb_to_recordset(${encodeEvents(runs.flatMap(({ events }) => events))}::jsonb)
            as e ("runId" text, sequence int, type text, status text, label text, payload jsonb, timestamp timestamptz)
          join running r on r.id = e."runId"
        on conflict (tenant_id, run_id, sequence) do nothing`
      ).pipe(
        forTenants(runs.map(({ scope }) => scope.tenantId)),
        Effect.asVoid,
        orUnstorable,
        Effect.withSpan("AgentRunStore.flush")
      )

    return { trace, outcome, status, runningOf, requestStop, toStop, flush } as const
  })
}) {}
