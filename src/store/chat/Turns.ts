/**
 * The rows of a chat turn. One statement starts a turn and one settles it, so that a crash leaves no partial state.
 * docs/design/turns.md explains tickets, epochs and leases.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import type { Fragment } from "@effect/sql/Statement"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import { ExhaustedBudget } from "../../domain/billing/Budget.ts"
import type { Bill } from "../../domain/billing/Cost.ts"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { ExternalEndUserId } from "../../domain/chat/ChatTurn.ts"
import type { ChatId } from "../../domain/chat/UiChat.ts"
import {
  type ConversationChannel,
  ConversationState,
  MessageRole
} from "../../domain/conversations/Conversation.ts"
import { type ConversationId, EndUserId, type MessageId, type RunId } from "../../domain/Ids.ts"
import { languageCode } from "../../search/LanguageCode.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { jsonbOf } from "../Jsonb.ts"
import { sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import { releaseReservation } from "../billing/TurnBudget.ts"
import { reserveTurn } from "../billing/TurnQuota.ts"
import { conversationStarted, eventWrites } from "../events/ReportedEvents.ts"
import { hashPassages, retrySettlement, StoredPassages } from "./RunPassages.ts"
import { ChatTaken, findChat, isChatTaken } from "./Chats.ts"
import { type Answered, historyOf } from "./TurnHistory.ts"
import {
  type AfterWrite,
  countStatement,
  releaseStatement,
  type Settled,
  settleEmptyStatement,
  type Settlement,
  settleTurn,
  type TurnUse,
  type UnstoredTurn
} from "./TurnSettlement.ts"
import { mayBeOfVisitor, mayBeVisitor } from "./Visitors.ts"
import { chosenVersion, settingsColumns, TurnAgent, withRecorded } from "./TurnVersion.ts"
import { orUnstorable } from "../Unstorable.ts"
import * as Rows from "../Rows.ts"
import { attachmentsJson } from "../conversations/AttachmentsJson.ts"

export type { Settled, Settlement }

/** The end user of the turn. */
export type Target =
  | { readonly _tag: "Anonymous" }
  | { readonly _tag: "EndUser"; readonly id: EndUserId }
  | { readonly _tag: "External"; readonly id: ExternalEndUserId }
  | { readonly _tag: "Conversation"; readonly id: ConversationId }

/** Input for starting a turn, with ids for rows that may have to be created. */
export interface TurnStart {
  readonly target: Target
  readonly persist: boolean
  readonly channel: ConversationChannel
  readonly instanceId: string
  readonly runId: RunId
  readonly endUserId: EndUserId
  readonly conversationId: ConversationId
  readonly userMessageId: MessageId
  readonly message: string
  /** Stored messages that the turn answers. Without it, `message` is added to the conversation when the turn ends. */
  readonly answers?: ReadonlyArray<MessageId>
  /**
   * Starts only while no turn runs and the message to answer is the conversation's last. Of concurrent requests one
   * succeeds.
   */
  readonly retries?: boolean
  /** The message was answered before, or is being answered. The history ends before it. */
  readonly regenerates?: boolean
  /** The client's id of the conversation that begins with the turn. */
  readonly chatId?: ChatId
  /** Files of `message`; empty without it. */
  readonly attachments?: ReadonlyArray<StoredAttachment>
  /** Time of the run's first event, in the stream and in the database. */
  readonly startedAt: DateTime.Utc
  readonly startedLabel: string
  /** Payload of the run's first event. */
  readonly startedPayload?: TurnPayload
  /** Maximum duration of the run. After it, another process ends the run. */
  readonly timeout: Duration.DurationInput
  /** The agent's version to test. Without it, the conversation's version is used. */
  readonly version?: number
}

/** Determines the agent's version that the turn uses. */
const versionChoiceOf = ({ conversationId, target, version }: TurnStart) => ({
  conversationId: target._tag === "Conversation" ? target.id : conversationId,
  version
})

const TurnPayload = Schema.Record({ key: Schema.String, value: Schema.Unknown })
type TurnPayload = typeof TurnPayload.Type
const encodePayload = jsonbOf(TurnPayload)

export const HistoryMessage = Schema.Struct({ role: MessageRole, content: Schema.String })
export type HistoryMessage = typeof HistoryMessage.Type

const StartedTurn = Schema.Struct({
  ...TurnAgent.fields,
  /** False when the quota is used up, a budget is exhausted, or the target does not exist. */
  reserved: Schema.Boolean,
  /** Whether the tenant has budgets, in which the turn must then be settled. */
  budgeted: Schema.Boolean,
  spentBudget: Schema.NullOr(ExhaustedBudget),
  periodStart: Schema.NullOr(Schema.ValidDateFromSelf),
  /** Whether a credit was used. */
  credited: Schema.Boolean,
  /** False when the target does not exist. */
  known: Schema.Boolean,
  endUserId: Schema.NullOr(EndUserId),
  state: Schema.NullOr(ConversationState),
  /** The conversation's epoch when the turn starts. The reply is written only under the same epoch. */
  epoch: Schema.Int,
  /** Null when the turn is not ordered within the conversation. */
  ticket: Schema.NullOr(Schema.Int),
  /** True when no earlier turn of the conversation is running and `history` is complete. */
  clear: Schema.Boolean,
  /** Oldest first. */
  history: Schema.Array(HistoryMessage)
})
export type StartedTurn = typeof StartedTurn.Type

const Place = Schema.Struct({
  clear: Schema.Boolean,
  /** An earlier turn's process has died, or its deadline has passed, and its message is not in the history yet. */
  dead: Schema.Boolean,
  state: ConversationState,
  epoch: Schema.Int,
  history: Schema.Array(HistoryMessage)
})

export class Turns extends Effect.Service<Turns>()("store/chat/Turns", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const storedPassages = new StoredPassages()

    /**
     * The end user of the turn: found, inserted or found by the caller's own id, or new. Has rows only if a turn was
     * reserved.
     */
    const endUserRows = (scope: AgentScope, { target, persist, endUserId }: TurnStart) => {
      if (target._tag === "EndUser") {
        return sql`
          select e.id from end_users e, reserved where e.tenant_id = ${scope.tenantId} and e.id = ${target.id}`
      }
      if (target._tag === "External") {
        return sql`
          insert into end_users (id, tenant_id, external_id)
          select ${endUserId}, ${scope.tenantId}, ${target.id} from reserved
          on conflict (tenant_id, external_id) do update set external_id = excluded.external_id
          returning id`
      }
      return persist
        ? sql`insert into end_users (id, tenant_id) select ${endUserId}, ${scope.tenantId} from reserved returning id`
        : sql`select null::text as id where false`
    }

    /** Marks the message's files as used by the conversation. */
    const fileClaims = ({ attachments = [] }: TurnStart, from: Fragment) =>
      attachments.length === 0
        ? sql``
        : sql`
          kept as (
            insert into conversation_artifacts (tenant_id, conversation_id, ref)
            select distinct origin.tenant_id, origin.id, a.artifact
            from ${from}, jsonb_to_recordset(${attachmentsJson(attachments)}::jsonb) as a (artifact text)
            on conflict do nothing
          ),`

    /** Inserts the run with the user's message, and its first event. */
    const runRows = (scope: ReadScope, start: TurnStart, from: Fragment) => sql`
      run as (
        insert into agent_runs (
          id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message, period_start, credited,
          epoch, answers, attachments, source_scope, status, started_at, ends_by, agent_version,
          language
        )
        select ${start.runId}, ${scope.tenantId}, ${scope.agentId}, origin.id, origin.ticket, ${start.instanceId},
          ${start.userMessageId}, ${start.message}, reserved.period_start, reserved.credited,
          origin.epoch, ${start.answers ?? null}::text[], ${attachmentsJson(start.attachments ?? [])}::jsonb,
          ${sourceScopeJson(scope)}::jsonb, 'running',
          ${DateTime.formatIso(start.startedAt)}::timestamptz,
          now() + make_interval(secs => ${Duration.toSeconds(start.timeout)}),
          (select ${chosenVersion(sql, versionChoiceOf(start))} from agents a
            where a.tenant_id = ${scope.tenantId} and a.id = ${scope.agentId}),
          ${languageCode(start.message)}
        from ${from}, reserved
        returning tenant_id, id
      ),
      ${fileClaims(start, from)}
      started as (
        insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
        select tenant_id, id, 1, 'run.started', 'running', ${start.startedLabel},
          ${start.startedPayload === undefined ? null : encodePayload(start.startedPayload)}::jsonb,
          ${DateTime.formatIso(start.startedAt)}::timestamptz
        from run
      )`

    const budgetHolder = (scope: ReadScope, { instanceId, runId, timeout }: TurnStart) => ({
      ...scope,
      runId,
      instanceId,
      timeout
    })

    const columns = (start: TurnStart) => sql`
      ${settingsColumns(sql, versionChoiceOf(start))},
      exists (select 1 from reserved) as reserved,
      coalesce((select has_budgets from tenant), false) as budgeted,
      (select spent_budget from tenant) as "spentBudget",
      (select period_start from reserved) as "periodStart",
      coalesce((select credited from reserved), false) as credited`

    /** Starts a turn in a new conversation, or without one. */
    const open = (scope: ReadScope, start: TurnStart) => {
      const known =
        start.target._tag === "EndUser"
          ? sql`exists (select 1 from end_users e where e.tenant_id = ${scope.tenantId} and e.id = ${start.target.id} and ${mayBeVisitor(sql, scope)})`
          : sql`true`
      const rows = sql`
        , conversation as (
          insert into conversations (id, tenant_id, agent_id, end_user_id, channel, source_scope, tickets, chat_id)
          select ${start.conversationId}, ${scope.tenantId}, ${scope.agentId}, identity.id, ${start.channel},
            ${sourceScopeJson(scope)}::jsonb, 1, ${start.chatId ?? null}
          from identity
          returning id, tickets as ticket, epoch, tenant_id, agent_id, end_user_id, channel
        ),
        ${runRows(scope, start, sql`conversation origin`)},
        ${eventWrites(sql, conversationStarted(sql, sql`conversation`))}`
      return sql`
        with ${reserveTurn(sql, budgetHolder(scope, start), known)},
        identity as (${endUserRows(scope, start)})
        ${start.persist ? rows : sql``}
        select ${columns(start)},
          (select id from identity) as "endUserId", ${known} as known, null as state, 0 as epoch,
          ${start.persist ? sql`1` : sql`null`}::int as ticket, true as clear, '[]'::json as history
        from agents a where a.tenant_id = ${scope.tenantId} and a.id = ${scope.agentId}`
    }

    /**
     * Starts a turn in a conversation that began under the same scope, or in one of a messaging channel, whose scope may be
     * changed between turns. A persistent turn takes a ticket.
     */
    const resume = (scope: ReadScope, start: TurnStart, id: ConversationId) => {
      const rows = sql`
        , ticketed as (
          update conversations c set tickets = c.tickets + 1 from reserved
          where c.tenant_id = ${scope.tenantId} and c.agent_id = ${scope.agentId} and c.id = ${id}
            and c.state = 'AI_ACTIVE'
            ${
              // Checked on the row itself, so that a statement that waited for the row's lock sees the new state.
              start.retries === true
                ? sql`and c.tickets = c.served and c.message_count = (
                    select m.position from messages m
                    where m.tenant_id = ${scope.tenantId} and m.conversation_id = ${id} and m.id = ${start.userMessageId} and m.role = 'user')`
                : sql``
            }
          returning c.id, c.tickets as ticket, c.served, c.message_count, c.epoch, c.tenant_id, c.agent_id,
            c.end_user_id, c.channel, c.channel_id, c.import_key
        ),
        ${runRows(scope, start, sql`ticketed origin`)},
        ${eventWrites(
          sql,
          // The first turn of a conversation that was created for it.
          conversationStarted(
            sql,
            sql`ticketed`,
            sql`ticket = 1 and message_count = 0 and channel_id is null and import_key is null`
          )
        )}`
      const place = start.persist
        ? sql`
          (select ticket from ticketed)::int as ticket,
          coalesce((select t.ticket = t.served + 1 and t.message_count = conversation.message_count from ticketed t), false)
            as clear`
        : sql`null::int as ticket, true as clear`
      return sql`
        with conversation as (
          select id, state, end_user_id, message_count, epoch from conversations
          where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id}
            and case when channel in ('api', 'widget') then source_scope is not distinct from ${sourceScopeJson(scope)}::jsonb
              else channel = ${start.channel} end
            and ${mayBeOfVisitor(sql, scope, sql`${id}`)}
        ),
        ${reserveTurn(sql, budgetHolder(scope, start), sql`exists (select 1 from conversation where state = 'AI_ACTIVE')`)}
        ${start.persist ? rows : sql``}
        select ${columns(start)}, conversation.end_user_id as "endUserId", conversation.id is not null as known,
          conversation.state, ${start.persist ? sql`coalesce((select epoch from ticketed), conversation.epoch, 0)` : sql`coalesce(conversation.epoch, 0)`}::int as epoch, ${place},
          (${historyOf(sql, scope, id, start)}) as history
        from agents a left join conversation on true
        where a.tenant_id = ${scope.tenantId} and a.id = ${scope.agentId}`
    }

    /**
     * Checks the target, reserves a turn of the quota and writes the start of the turn, in one statement. Nothing is
     * written if the target does not exist, the quota is used up, or another request started the chat at the same time.
     * Dies on a deadlock. The caller then runs its whole transaction again (`retryDeadlocks`).
     */
    const begin = CheapSpans.fn("Turns.begin")(function* (scope: ReadScope, start: TurnStart) {
      const { target } = start
      const execute = () =>
        target._tag === "Conversation" ? resume(scope, start, target.id) : open(scope, start)
      return yield* SqlSchema.single({ Request: Schema.Void, Result: StartedTurn, execute })(undefined).pipe(
        Effect.map(withRecorded),
        // A budget was reserved, but no turn of the quota.
        Effect.tap(({ budgeted, reserved, spentBudget }) =>
          budgeted && !reserved && spentBudget === null
            ? releaseReservation(sql, scope.tenantId, start.runId)
            : Effect.void
        ),
        Effect.catchAll((error) =>
          start.chatId !== undefined && isChatTaken(error) ? Effect.fail(new ChatTaken()) : Effect.die(error)
        )
      )
    })

    const chat = (scope: ReadScope, id: ChatId) => findChat(sql, scope, id)

    /** Whether every earlier turn of the conversation has ended, and the history. */
    const place = (
      scope: AgentScope,
      conversationId: ConversationId,
      ticket: number,
      answered: Answered = {}
    ) =>
      sql`
        select c.state, c.epoch::int, (${historyOf(sql, scope, conversationId, answered)}) as history,
          earlier.running = 0 as clear, earlier.alive < earlier.running as dead
        from conversations c, lateral (
          select count(*) as running, count(i.id) filter (where r.ends_by >= now()) as alive
          from agent_runs r left join instances i on i.id = r.instance_id and i.lease_until > now()
          where r.tenant_id = c.tenant_id and r.conversation_id = c.id and r.ticket < ${ticket} and r.status = 'running'
        ) earlier
        where c.tenant_id = ${scope.tenantId} and c.agent_id = ${scope.agentId} and c.id = ${conversationId}`.pipe(
        Rows.one(Place),
        CheapSpans.span("Turns.place")
      )

    /**
     * Writes the end of the turn, once. A reply is written only while the agent answers the conversation and no human
     * has taken over since the turn began. `afterWrite` runs in the same transaction. May be repeated when the answer
     * was lost. Fails, without a change, if the content cannot be stored.
     */
    const settle = CheapSpans.fn("Turns.settle")(function* (
      scope: AgentScope,
      settlement: Settlement,
      afterWrite: AfterWrite | null = null
    ) {
      const passages = hashPassages(settlement.passages ?? [])
      const written = settleTurn(sql, scope, settlement, passages, storedPassages, afterWrite)
      return yield* storedPassages.settle(scope, passages, written)
    }, orUnstorable)

    /**
     * Ends a run whose content cannot be stored, as failed. Nothing of its content is written. Without `used` the turn
     * is returned to the quota.
     */
    const settleEmpty = CheapSpans.fn("Turns.settleEmpty")(function* (
      scope: AgentScope,
      runId: RunId,
      used?: TurnUse
    ) {
      const ownRun = sql`r.agent_id = ${scope.agentId} and r.id = ${runId}`
      yield* retrySettlement(settleEmptyStatement(sql, scope, ownRun, "Run failed", used))
    }, Effect.orDie)

    /** Counts a turn that stores nothing else (`persist: false`). */
    const count = (scope: AgentScope, unstored: UnstoredTurn, bills: ReadonlyArray<Bill>) =>
      countStatement(sql, scope, unstored, bills).pipe(
        Effect.orDie,
        Effect.asVoid,
        CheapSpans.span("Turns.count")
      )

    /** Returns a reserved turn that failed before the model was called and of which nothing is stored. */
    const release = (scope: AgentScope, unstored: UnstoredTurn) =>
      releaseStatement(sql, scope, unstored).pipe(
        Effect.orDie,
        Effect.asVoid,
        CheapSpans.span("Turns.release")
      )

    return { begin, chat, place, settle, settleEmpty, count, release } as const
  })
}) {}
