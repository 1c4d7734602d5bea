/** Data of the dashboard's inbox beyond the conversations' rows: customers, last messages, files and runs. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  ConversationPreview,
  InboxMessage,
  LastRun,
  PostedMessage
} from "../../domain/conversations/InboxView.ts"
import { AgentId, ConversationId, MessageId, type RunId } from "../../domain/Ids.ts"
import { isoTime, toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const ConversationPreviewRow = Schema.Struct({
  conversationId: ConversationId,
  ...ConversationPreview.fields
})

const MessageRow = Schema.Struct({ ...InboxMessage.fields, createdAt: Schema.DateTimeUtcFromDate })

const AddedRow = Schema.Struct({
  id: MessageId,
  ...Schema.Struct(PostedMessage.fields).pick("delivery", "feedback").fields
})

const LastRunRow = Schema.Struct({
  runId: Schema.NullOr(LastRun.fields.runId),
  status: Schema.NullOr(LastRun.fields.status),
  at: Schema.NullOr(Schema.DateTimeUtcFromDate),
  failure: LastRun.fields.failure
})

const Owner = Schema.Struct({ agentId: AgentId })

export class InboxViewStore extends Effect.Service<InboxViewStore>()("store/conversations/InboxView", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Why the run `r` failed, as `RunFailure`. Null if it did not fail, or its conversation was taken over. */
    const failureOf = (run: Fragment) => sql`(
      select jsonb_build_object('code', coalesce(e.payload ->> 'code', 'TURN_FAILED'), 'provider', e.payload -> 'provider')
      from agent_run_events e
      where e.tenant_id = ${run}.tenant_id and e.run_id = ${run}.id and ${run}.status = 'failed' and e.type = 'run.failed'
        and coalesce(e.payload ->> 'code', '') <> 'TAKEN_OVER'
      limit 1
    )`

    /** Joins the failed run `u` that should have answered the customer's message `m`, if nothing has answered it. */
    const unansweredBy = sql`
      left join lateral (
        select u.tenant_id, u.id, u.status from agent_runs u
        where u.tenant_id = m.tenant_id and m.role = 'user' and m.answered_by is null and u.conversation_id = m.conversation_id
          and u.user_message_id = m.id
        order by u.ticket desc limit 1
      ) u on u.status = 'failed'`

    /** The end user, and the beginning of the last message, for each of `ids`. */
    const previews = ({ tenantId }: TenantScope, ids: ReadonlyArray<ConversationId>) =>
      sql`
        select c.id as "conversationId",
          coalesce(p.external_id, (
            select a.value from end_user_aliases a where a.tenant_id = p.tenant_id and a.end_user_id = p.id
            order by array_position(array['phone', 'user_id', 'page_scoped_id', 'parent_user_id'], a.kind) limit 1
          )) as customer,
          left(m.content, 160) as preview, ${failureOf(sql`u`)} as failure,
          (
            select jsonb_build_object('helpful', count(*) filter (where f.rating = 1),
              'unhelpful', count(*) filter (where f.rating = -1))
            from message_feedback f where f.tenant_id = c.tenant_id and f.conversation_id = c.id
          ) as ratings
        from conversations c join end_users p on p.tenant_id = c.tenant_id and p.id = c.end_user_id
        left join lateral (
          select l.tenant_id, l.id, l.conversation_id, l.role, l.content, l.answered_by from messages l
          where l.tenant_id = c.tenant_id and l.conversation_id = c.id and l.position is not null order by l.position desc limit 1
        ) m on true ${unansweredBy}
        where c.tenant_id = ${opaque(sql, tenantId)} and c.id in (select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`.pipe(
        Rows.all(ConversationPreviewRow),
        Effect.withSpan("InboxViewStore.previews")
      )

    const stages = sql.literal("array['sent', 'delivered', 'read']")

    /** The delivery state of message `m`: that of a failed part, else of the part that has advanced least. */
    const delivery = sql`(
      select jsonb_build_object(
        'status', case when bool_or(o.state = 'failed') then 'failed'
          when bool_or(o.state in ('pending', 'sending')) then 'pending'
          when bool_or(o.state = 'cancelled') then 'cancelled'
          else (${stages})[min(array_position(${stages}, coalesce(o.delivery, 'sent')))] end,
        'reason', (array_agg(o.last_error order by o.part) filter (where o.state = 'failed'))[1]
      )
      from channel_outbox o where o.tenant_id = m.tenant_id and o.message_id = m.id having count(*) > 0
    )`

    /** Rating of message `m`. */
    const feedback = sql`(
      select jsonb_build_object('rating', f.rating, 'comment', f.comment,
        'at', ${isoTime(sql, sql`f.updated_at`)})
      from message_feedback f where f.tenant_id = m.tenant_id and f.message_id = m.id
    )`

    /**
     * The last `limit` messages before the message `before`, or of all, newest first. Messages without a key are older
     * and are not included.
     */
    const messagesBefore = (
      { tenantId }: TenantScope,
      id: ConversationId,
      before: MessageId | undefined,
      limit: number
    ) =>
      sql`
        select m.id, m.role, m.content, m.created_at as "createdAt", m.author, m.citations, m.attachments,
          m.position::int as position, case when m.author_user_id is not null then jsonb_build_object(
            'id', m.author_user_id, 'email', (
              select w.email from users w where w.tenant_id = ${tenantId} and w.id = m.author_user_id
            )) end as by,
          coalesce(r.id, u.id) as "runId", ${failureOf(sql`u`)} as failure, ${delivery} as delivery,
          ${feedback} as feedback
        from (
          select * from messages n where n.tenant_id = ${tenantId} and n.conversation_id = ${id} and ${
            before === undefined
              ? sql`n.position is not null`
              : sql`n.position < (select b.position from messages b
                  where b.tenant_id = ${tenantId} and b.conversation_id = ${id} and b.id = ${before})`
          }
          order by n.position desc limit ${limit}
        ) m
        left join agent_runs r
          on r.tenant_id = ${tenantId} and r.conversation_id = ${id} and r.message_id = m.id and m.role = 'assistant'
        ${unansweredBy}
        order by m.position desc`.pipe(Rows.all(MessageRow), Effect.withSpan("InboxViewStore.messagesBefore"))

    /** Delivery states of those of `ids` that were sent through a channel, and the customers' ratings. */
    const receipts = ({ tenantId }: TenantScope, ids: ReadonlyArray<MessageId>) =>
      sql`
        select m.id, m.delivery, m.feedback from (
          select m.id, ${delivery} as delivery, ${feedback} as feedback
          from (
            select ${tenantId}::text as tenant_id, id from jsonb_array_elements_text(${toJsonb(ids)}::jsonb) as given (id)
          ) m
        ) m where m.delivery is not null or m.feedback is not null`.pipe(
        Rows.all(AddedRow),
        Effect.withSpan("InboxViewStore.receipts")
      )

    /** The agent's turn that ended last, null before the first. None when the tenant has no such agent. */
    const lastRun = ({ tenantId, agentId }: AgentScope) =>
      sql`
        select r.id as "runId", r.status, coalesce(r.completed_at, r.started_at) as at, ${failureOf(sql`r`)} as failure
        from agents a left join lateral (
          select * from agent_runs l where l.tenant_id = a.tenant_id and l.agent_id = a.id and l.status <> 'running' order by l.id desc limit 1
        ) r on true
        where a.tenant_id = ${tenantId} and a.id = ${agentId}`.pipe(
        Rows.first(LastRunRow),
        Effect.map(
          Option.map(({ at, runId, status, ...run }): LastRun | null =>
            runId === null || status === null || at === null ? null : { ...run, runId, status, at }
          )
        ),
        Effect.withSpan("InboxViewStore.lastRun")
      )

    /** The agent of a run. None when the tenant has no such run. */
    const agentOf = ({ tenantId }: TenantScope, runId: RunId) =>
      sql`
        select r.agent_id as "agentId" from agent_runs r where r.tenant_id = ${tenantId} and r.id = ${runId}`.pipe(
        Rows.first(Owner),
        Effect.map(Option.map(({ agentId }) => agentId)),
        Effect.withSpan("InboxViewStore.agentOf")
      )

    return { previews, messagesBefore, receipts, lastRun, agentOf } as const
  })
}) {}
