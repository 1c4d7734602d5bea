/** The statement that settles a chat turn: messages, trace, counters and the run's end, all or nothing. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { RunEvent, type RunPassage } from "../../domain/chat/AgentRun.ts"
import { type Bill, sumOf } from "../../domain/billing/Cost.ts"
import { Citation } from "../../domain/chat/ChatTurn.ts"
import type { MessageId, RunId } from "../../domain/Ids.ts"
import { jsonbOf } from "../Jsonb.ts"
import { modelUsageWrites } from "../billing/ModelUsage.ts"
import { thresholdEvents, readBudgets, settledBudgets } from "../billing/TurnBudget.ts"
import { returnTurns } from "../billing/TurnQuota.ts"
import { activityAssignments } from "../conversations/Activity.ts"
import { eventWrites, type Report } from "../events/ReportedEvents.ts"
import { type HashedPassage, passageWrites, type StoredPassages } from "./RunPassages.ts"

/** The result of a turn, for reports. */
export interface TurnSummary {
  /** Nothing was found or cited for a question, or the sources do not support the reply. */
  unanswered: boolean
  /** It was stopped on request. */
  stopped: boolean
  /** Milliseconds from the start to the first text of the reply; null without a reply. */
  firstTextMs: number | null
}

const emptySummary: TurnSummary = { unanswered: false, stopped: false, firstTextMs: null }

/** The end of a turn. `counted` is false when it failed before the model was called. */
export interface Settlement {
  readonly runId: RunId
  readonly counted: boolean
  readonly inputTokens: number
  readonly outputTokens: number
  /** Usage of models. */
  readonly bills?: ReadonlyArray<Bill>
  /** Whether the turn has a reservation in the tenant's budgets. */
  readonly budgeted?: boolean
  /** Null when the turn failed. Then only the user's message is added to the conversation. */
  readonly reply: {
    readonly id: MessageId
    readonly content: string
    readonly citations: ReadonlyArray<Citation>
  } | null
  /** The reason, if the agent hands the conversation to a human with this reply. */
  readonly handoff?: string | undefined
  readonly summary?: TurnSummary
  /** True when a human took over the conversation since the turn began. */
  readonly takenOver?: boolean
  /** Events that may not be stored yet. Stored ones are not changed. */
  readonly events: ReadonlyArray<RunEvent>
  /** Passages that the model was shown. */
  readonly passages?: ReadonlyArray<RunPassage>
}

/**
 * Result of settling. `Gone`: the run had ended already. `Fenced`: a human took over the conversation since the turn
 * began, and nothing was written. `Written`: with the conversation's new epoch.
 */
export type Settled =
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Fenced" }
  | { readonly _tag: "Written"; readonly epoch: number }

/** Runs in the transaction that writes the reply, with the conversation's new epoch. */
export type AfterWrite = (epoch: number) => Effect.Effect<void>

/** The row of {@link settleStatement}: `epoch` is null when nothing was written. */
const SettledRow = Schema.Struct({ running: Schema.Boolean, epoch: Schema.NullOr(Schema.Int) })

/** Encoded so that `jsonb` accepts any payload. */
export const encodeEvents = jsonbOf(Schema.Array(RunEvent))
const encodeCitations = jsonbOf(Schema.Array(Citation))

/** Maximum of an integer column. Larger counts are cut. */
const maxTokens = 2_147_483_647

/** Reports that the turn has ended and then, if requested, that a human is needed. */
const settledEvents = (sql: SqlClient.SqlClient, { budgeted, handoff, reply }: Settlement) => {
  const of = {
    tenantId: sql`settled.tenant_id`,
    agentId: sql`settled.agent_id`,
    conversationId: sql`settled.conversation_id`
  }
  const ended: Report = {
    ...of,
    type: "turn.settled",
    key: sql`settled.id`,
    ids: sql`jsonb_build_object('runId', settled.id, 'messageId', ${reply?.id ?? null}::text,
      'status', ${sql.literal(reply === null ? "'failed'" : "'complete'")})`,
    from: sql`settled`
  }
  const budgets = budgeted === true ? [thresholdEvents(sql)] : []
  if (handoff === undefined) return eventWrites(sql, ended, ...budgets)
  const handoffRequested: Report = {
    ...of,
    type: "handoff.requested",
    key: sql`conversation.id || ':' || conversation.epoch`,
    ids: sql`'{}'::jsonb`,
    from: sql`settled, conversation`,
    place: sql`1`
  }
  return eventWrites(sql, ended, handoffRequested, ...budgets)
}

/** Inserts the reply, marks the messages that it answers, and inserts the user's message unless it is stored. */
const messageWrites = (sql: SqlClient.SqlClient, { inputTokens, outputTokens, reply }: Settlement) => sql`
  asked as (
    insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, attachments, created_at)
    select run.user_message_id, run.tenant_id, conversation.id, run.agent_id,
      conversation.message_count - ${reply === null ? 0 : 1}::int, 'user', run.user_message, run.attachments, run.started_at
    from run, conversation where run.answers is null
  )
  ${
    reply === null
      ? sql``
      : sql`, replied as (
          insert into messages (
            id, tenant_id, conversation_id, agent_id, position, role, content, author, citations, input_tokens,
            output_tokens
          )
          select ${reply.id}, run.tenant_id, conversation.id, run.agent_id, conversation.message_count, 'assistant',
            ${reply.content}, 'agent', ${encodeCitations(reply.citations)}::jsonb, ${inputTokens}::int,
            ${outputTokens}::int
          from run, conversation
        ),
        answered as (
          update messages m set answered_by = ${reply.id} from run, conversation
          where m.tenant_id = run.tenant_id and m.conversation_id = conversation.id and m.id = any(run.answers) and m.answered_by is null
        )`
  }`

/**
 * The new value of `served` of the conversation `c` after a turn has ended. A turn that gave up waiting may end before
 * earlier ones.
 */
export const nextServedTicket = (
  sql: SqlClient.SqlClient,
  ticket: Statement.Fragment,
  ended: Statement.Fragment = sql``
) => sql`
  case when c.served = ${ticket} - 1 or not exists (
    select 1 from agent_runs e
    where e.tenant_id = c.tenant_id and e.conversation_id = c.id and e.ticket < ${ticket} and e.status = 'running' ${ended}
  ) then greatest(c.served, ${ticket}) else c.served end`

/**
 * Ends the run if it is running. A reply is written only while the agent answers and no human has taken over since the
 * turn began.
 */
const settleStatement = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  given: Settlement,
  passages: ReadonlyArray<HashedPassage>,
  known: StoredPassages
) => {
  const settlement: Settlement = {
    ...given,
    inputTokens: Math.min(given.inputTokens, maxTokens),
    outputTokens: Math.min(given.outputTokens, maxTokens)
  }
  const { bills = [], summary = emptySummary, handoff, reply, takenOver = false } = settlement
  const cost = sumOf(bills)
  return sql`
        with run as (
          select id, agent_id, tenant_id, conversation_id, ticket, epoch, period_start, credited, user_message_id,
            user_message, answers, attachments, started_at
          from agent_runs
          where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${settlement.runId}
            and status = 'running' for update
        ),
        conversation as (
          update conversations c set served = ${nextServedTicket(sql, sql`run.ticket`)}, ${activityAssignments(sql)},
            message_count = c.message_count + ${reply === null ? 0 : 1}::int
              + case when run.answers is null then 1 else 0 end
            ${handoff === undefined ? sql`` : sql`, state = 'HUMAN_REQUESTED', epoch = c.epoch + 1, handoff_reason = ${handoff}`}
          from run where c.tenant_id = run.tenant_id and c.id = run.conversation_id
            ${reply === null ? sql`` : sql`and c.state = 'AI_ACTIVE' and c.epoch = run.epoch`}
          returning c.id, c.message_count, c.epoch
        ),
        settled as (select run.* from run, conversation),
        ended as (
          update agent_runs r set status = ${reply === null ? "failed" : "complete"}, completed_at = now(),
            message_id = ${reply?.id ?? sql`r.user_message_id`}, unanswered = ${summary.unanswered}::boolean,
            stopped = ${summary.stopped}::boolean, first_text_ms = ${summary.firstTextMs}::int,
            handed_over = ${handoff !== undefined || takenOver}::boolean,
            cost_nano = ${cost.nanoUsd}::bigint, unpriced_calls = ${cost.unpricedCalls}::int
          from settled where r.tenant_id = settled.tenant_id and r.id = settled.id
        ),
        ${messageWrites(sql, settlement)},
        traced as (
          insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
          select settled.tenant_id, settled.id, e.sequence, e.type, e.status, e.label, e.payload, e.timestamp
          from settled, jsonb_to_recordset(${encodeEvents(settlement.events)}::jsonb)
            as e (sequence int, type text, status text, label text, payload jsonb, timestamp timestamptz)
          on conflict (tenant_id, run_id, sequence) do nothing
        ),
        ${passageWrites(sql, scope, passages, known)}
        ${settlement.budgeted === true ? sql`${settledBudgets(sql, bills)},` : sql``}
        ${settledEvents(sql, settlement)},
        ${settlement.counted ? counters(sql, reply === null ? noTokens : settlement, bills) : returnTurns(sql, sql`settled`)}
        select exists (select 1 from run) as running, (select epoch::int from conversation) as epoch
          ${settlement.budgeted === true ? sql`, ${readBudgets(sql)}` : sql``}`
}

/** Runs {@link settleStatement}. Texts that are `known` when it runs are not sent. */
const settleOnce = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  settlement: Settlement,
  passages: ReadonlyArray<HashedPassage>,
  known: StoredPassages
) =>
  SqlSchema.single({
    Request: Schema.Void,
    Result: SettledRow,
    execute: () => settleStatement(sql, scope, settlement, passages, known)
  })(undefined).pipe(
    Effect.map(({ epoch, running }): Settled => {
      if (!running) return { _tag: "Gone" }
      return epoch === null ? { _tag: "Fenced" } : { _tag: "Written", epoch }
    })
  )

/** Whether the reply is stored although the run has ended: an attempt before was executed, and its answer was lost. */
const findStored = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  { reply, runId }: Settlement
): Effect.Effect<Settled, SqlError> =>
  reply === null
    ? Effect.succeed({ _tag: "Gone" })
    : sql<{ readonly epoch: number }>`
        select c.epoch::int from agent_runs r
        join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id
        where r.tenant_id = ${scope.tenantId} and r.agent_id = ${scope.agentId} and r.id = ${runId}
          and r.message_id = ${reply.id}`.pipe(
        Effect.map(([row]) => (row === undefined ? { _tag: "Gone" } : { _tag: "Written", ...row }))
      )

/** Writes the end of a turn, and with it `afterWrite`. */
export const settleTurn = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  settlement: Settlement,
  passages: ReadonlyArray<HashedPassage>,
  known: StoredPassages,
  afterWrite: AfterWrite | null
) => {
  const settled = settleOnce(sql, scope, settlement, passages, known)
  const written =
    afterWrite === null
      ? settled
      : sql.withTransaction(
          Effect.tap(settled, (end) => (end._tag === "Written" ? afterWrite(end.epoch) : Effect.void))
        )
  return Effect.flatMap(written, (end) =>
    end._tag === "Gone" ? findStored(sql, scope, settlement) : Effect.succeed(end)
  )
}

/**
 * Reports runs that ended without a message. Rows of `from` are those of `agent_runs`; their conversations are updated.
 */
export const endedWithoutMessageEvents = (sql: SqlClient.SqlClient, from: Statement.Fragment): Report => ({
  type: "turn.settled",
  key: sql`ended.id`,
  tenantId: sql`ended.tenant_id`,
  agentId: sql`ended.agent_id`,
  conversationId: sql`ended.conversation_id`,
  ids: sql`jsonb_build_object('runId', ended.id, 'messageId', null, 'status', 'failed')`,
  from: sql`${from} ended where ended.conversation_id in (select id from conversation)`,
  place: sql`ended.ticket`
})

/** What a turn has used of quota and budgets. */
export type TurnUse = Pick<Settlement, "counted" | "bills" | "budgeted">

/**
 * Ends the tenant's running runs `r` for which `condition` holds as failed, without a message: neither the user's
 * message nor an event with more than `label` is written. For runs whose content cannot be stored.
 */
export const settleEmptyStatement = (
  sql: SqlClient.SqlClient,
  { tenantId }: { readonly tenantId: string },
  condition: Statement.Fragment,
  label: string,
  { bills = [], budgeted = false, counted }: TurnUse = { counted: false }
) => sql<{ readonly id: string }>`
  with settled as (
    update agent_runs r set status = 'failed', completed_at = now(), message_id = null,
      cost_nano = ${bills.length === 0 ? null : sumOf(bills).nanoUsd}::bigint,
      unpriced_calls = ${bills.length === 0 ? null : sumOf(bills).unpricedCalls}::int
    where r.tenant_id = ${tenantId} and r.status = 'running' and ${condition}
    returning r.id, r.agent_id, r.tenant_id, r.conversation_id, r.ticket, r.period_start, r.credited
  ),
  conversation as (
    update conversations c set served = ${nextServedTicket(sql, sql`settled.ticket`)}, ${activityAssignments(sql)}
    from settled where c.tenant_id = settled.tenant_id and c.id = settled.conversation_id
    returning c.id
  ),
  traced as (
    insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
    select tenant_id, id, 1 + coalesce((
        select max(sequence) from agent_run_events e where e.tenant_id = settled.tenant_id and e.run_id = settled.id), 0),
      'run.failed', 'failed', ${label}, null, now()
    from settled
  ),
  ${budgeted ? sql`${settledBudgets(sql, bills)},` : sql``}
  ${eventWrites(sql, endedWithoutMessageEvents(sql, sql`settled`), ...(budgeted ? [thresholdEvents(sql)] : []))},
  ${counted ? counters(sql, noTokens, bills) : returnTurns(sql, sql`settled`)}
  select id ${budgeted ? sql`, ${readBudgets(sql)}` : sql``} from settled`

/** For a turn without a reply. Usage counts the tokens of stored replies only. */
const noTokens = { inputTokens: 0, outputTokens: 0 } as const

/**
 * CTEs that add the turn, its tokens and its cost to the agent's usage. They read `settled`. The agent's own row, which
 * all its turns lock first, comes before those of models.
 */
const counters = (
  sql: SqlClient.SqlClient,
  tokens: { readonly inputTokens: number; readonly outputTokens: number },
  bills: ReadonlyArray<Bill>
) => sql`
  counted as (
    insert into agent_usage as used (tenant_id, agent_id, period_start, turns, input_tokens, output_tokens)
    select tenant_id, agent_id, period_start, 1, ${tokens.inputTokens}::int, ${tokens.outputTokens}::int from settled
    on conflict (tenant_id, agent_id, period_start) do update set turns = used.turns + 1,
      input_tokens = used.input_tokens + excluded.input_tokens,
      output_tokens = used.output_tokens + excluded.output_tokens
    returning agent_id
  )
  ${bills.length === 0 ? sql`` : sql`, ${modelUsageWrites(sql, bills, sql`settled, counted`)}`}`

/** A started turn without a run. */
export interface UnstoredTurn {
  readonly runId: RunId
  readonly periodStart: Date
  readonly credited: boolean
  readonly budgeted: boolean
}

/** Counts a turn of which nothing else is stored. */
export const countStatement = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  { budgeted, periodStart, runId }: UnstoredTurn,
  bills: ReadonlyArray<Bill>
) => sql`
  with settled as (
    select ${scope.tenantId}::text as tenant_id, ${scope.agentId}::text as agent_id, ${runId}::text as id,
      ${periodStart}::timestamptz as period_start
  ),
  ${budgeted ? sql`${settledBudgets(sql, bills)}, ${eventWrites(sql, thresholdEvents(sql))},` : sql``}
  ${counters(sql, noTokens, bills)}
  select ${budgeted ? readBudgets(sql) : sql`1`}`

/** Reverts a turn of which nothing is stored. */
export const releaseStatement = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  { budgeted, credited, periodStart, runId }: UnstoredTurn
) => sql`
  with settled as (
    select ${scope.tenantId}::text as tenant_id, ${runId}::text as id, ${periodStart}::timestamptz as period_start,
      ${credited}::boolean as credited
  ),
  ${budgeted ? sql`${settledBudgets(sql, [])},` : sql``}
  ${returnTurns(sql, sql`settled`)}
  select ${budgeted ? readBudgets(sql) : sql`1`}`
