/** What the dashboard's inbox shows of conversations beyond their rows: customers, last words, files and runs. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../domain/Account.ts"
import { Glance, InboxMessage, MessageDelivery } from "../domain/InboxView.ts"
import { AgentId, ConversationId, MessageId, type RunId } from "../domain/Ids.ts"
import { toJsonb } from "./Jsonb.ts"

const GlanceRow = Schema.Struct({ conversationId: ConversationId, ...Glance.fields })

const MessageRow = Schema.Struct({ ...InboxMessage.fields, createdAt: Schema.DateTimeUtcFromDate })

const DeliveryRow = Schema.Struct({ id: MessageId, delivery: MessageDelivery })

const Owner = Schema.Struct({ agentId: AgentId })

export class InboxViewStore extends Effect.Service<InboxViewStore>()("store/InboxView", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Who is spoken with, and the beginning of what was said last, for each of `ids`. */
    const glances = (ids: ReadonlyArray<ConversationId>) =>
      SqlSchema.findAll({
        Request: Schema.Void,
        Result: GlanceRow,
        execute: () => sql`
          select c.id as "conversationId",
            coalesce(u.external_id, (
              select a.value from end_user_aliases a where a.end_user_id = u.id
              order by array_position(array['phone', 'user_id', 'page_scoped_id', 'parent_user_id'], a.kind) limit 1
            )) as customer,
            (
              select left(m.content, 160) from messages m
              where m.conversation_id = c.id and m.position is not null order by m.position desc limit 1
            ) as preview
          from conversations c join end_users u on u.id = c.end_user_id
          where c.id in (select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`
      })(undefined).pipe(Effect.orDie, Effect.withSpan("InboxViewStore.glances"))

    const stages = sql.literal("array['sent', 'delivered', 'read']")

    /** Of message `m`: one part that could not be delivered stands for all, then the one that has come least far. */
    const delivery = sql`(
      select jsonb_build_object(
        'status', case when bool_or(o.state = 'failed') then 'failed'
          when bool_or(o.state in ('pending', 'sending')) then 'pending'
          when bool_or(o.state = 'cancelled') then 'cancelled'
          else (${stages})[min(array_position(${stages}, coalesce(o.delivery, 'sent')))] end,
        'reason', (array_agg(o.last_error order by o.part) filter (where o.state = 'failed'))[1]
      )
      from channel_outbox o where o.message_id = m.id having count(*) > 0
    )`

    /**
     * The last `limit` messages before the message `before`, or of all, newest first. Messages that wait for their keys
     * are older than these and not among them.
     */
    const before = (id: ConversationId, before: MessageId | undefined, limit: number) =>
      SqlSchema.findAll({
        Request: Schema.Void,
        Result: MessageRow,
        execute: () => sql`
          select m.id, m.role, m.content, m.created_at as "createdAt", m.author, m.citations, m.attachments,
            r.id as "runId", ${delivery} as delivery
          from (
            select * from messages n where n.conversation_id = ${id} and ${
              before === undefined
                ? sql`n.position is not null`
                : sql`n.position < (select b.position from messages b where b.conversation_id = ${id} and b.id = ${before})`
            }
            order by n.position desc limit ${limit}
          ) m
          left join agent_runs r on r.conversation_id = ${id} and r.message_id = m.id and m.role = 'assistant'
          order by m.position desc`
      })(undefined).pipe(Effect.orDie, Effect.withSpan("InboxViewStore.before"))

    /** How far those of `ids` have come that went out through a channel. */
    const deliveries = (ids: ReadonlyArray<MessageId>) =>
      SqlSchema.findAll({
        Request: Schema.Void,
        Result: DeliveryRow,
        execute: () => sql`
          select m.id, m.delivery from (
            select m.id, ${delivery} as delivery
            from jsonb_array_elements_text(${toJsonb(ids)}::jsonb) as m (id)
          ) m where m.delivery is not null`
      })(undefined).pipe(Effect.orDie, Effect.withSpan("InboxViewStore.deliveries"))

    /** The agent of a run, or none when the tenant has no such run. */
    const agentOf = ({ tenantId }: TenantScope, runId: RunId) =>
      SqlSchema.findOne({
        Request: Schema.Void,
        Result: Owner,
        execute: () => sql`
          select r.agent_id as "agentId" from agent_runs r where r.tenant_id = ${tenantId} and r.id = ${runId}`
      })(undefined).pipe(
        Effect.orDie,
        Effect.map(Option.map(({ agentId }) => agentId)),
        Effect.withSpan("InboxViewStore.agentOf")
      )

    return { glances, before, deliveries, agentOf } as const
  })
}) {}
