/** Reads and writes of the widget in one conversation: messages with their files, and ratings. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { processStopped } from "../../domain/chat/AgentRun.ts"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import { Citation } from "../../domain/chat/ChatTurn.ts"
import { Message } from "../../domain/conversations/Conversation.ts"
import type { ConversationId, MessageId } from "../../domain/Ids.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { Author, type FeedbackRequest, LastTurn, Rating } from "../../domain/chat/Widget.ts"
import { eventWrites } from "../events/ReportedEvents.ts"
import { activityAssignments } from "../conversations/Activity.ts"
import * as Rows from "../Rows.ts"
import { attachmentsJson } from "../conversations/AttachmentsJson.ts"

const Row = Schema.Struct({
  ...Message.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  position: Schema.Int,
  author: Schema.NullOr(Author),
  citations: Schema.Array(Citation),
  attachments: Schema.Array(StoredAttachment),
  rating: Schema.NullOr(Rating)
})

const Asked = Schema.Struct({ content: Schema.String, attachments: Schema.Array(StoredAttachment) })

/** A message of the person that no turn answers. */
export interface NewMessage {
  readonly id: MessageId
  readonly content: string
  readonly attachments: ReadonlyArray<StoredAttachment>
}

export class WidgetMessageStore extends Effect.Service<WidgetMessageStore>()("store/chat/WidgetMessages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** At most `limit` messages after the position `after`, oldest first. */
    const page = ({ tenantId }: TenantScope, conversationId: ConversationId, after: number, limit: number) =>
      sql`
        select m.id, m.role, m.content, m.created_at as "createdAt", m.position::int, m.author, m.citations,
          m.attachments, f.rating
        from messages m left join message_feedback f on f.tenant_id = m.tenant_id and f.message_id = m.id
        where m.tenant_id = ${tenantId} and m.conversation_id = ${conversationId} and m.position > ${after}
        order by m.position limit ${limit}`.pipe(Rows.all(Row), Effect.withSpan("WidgetMessageStore.page"))

    /** A message of the person; none when the conversation has no such message. */
    const findMessage = ({ tenantId }: TenantScope, conversationId: ConversationId, id: MessageId) =>
      sql`
        select content, attachments from messages
        where tenant_id = ${tenantId} and conversation_id = ${conversationId} and id = ${id} and role = 'user'`.pipe(
        Rows.first(Asked),
        Effect.withSpan("WidgetMessageStore.findMessage")
      )

    /**
     * State of the conversation's last turn; none before the first. The side effects of a turn whose process stopped
     * are not known, so it is `lost` only if the agent has no tools.
     */
    const lastTurn = ({ tenantId }: TenantScope, conversationId: ConversationId) =>
      sql`
        select r.user_message_id as "messageId", case when r.status = 'failed' and exists (
            select from agent_run_events e
            where e.tenant_id = r.tenant_id and e.run_id = r.id and e.type = 'run.failed' and e.payload ->> 'code' = ${processStopped}
          ) and not exists (select from tools t
            where t.tenant_id = r.tenant_id and t.agent_id = r.agent_id) then 'lost' else r.status end as status
        from agent_runs r
        where r.tenant_id = ${tenantId} and r.conversation_id = ${conversationId} order by r.ticket desc limit 1`.pipe(
        Rows.first(LastTurn),
        Effect.withSpan("WidgetMessageStore.lastTurn")
      )

    /**
     * Stores a message of the person while a human answers, once. False while the agent answers, or if the conversation
     * is closed.
     */
    const store = Effect.fn("WidgetMessageStore.store")(
      function* (scope: AgentScope, conversationId: ConversationId, message: NewMessage) {
        const attachments = attachmentsJson(message.attachments)
        const rows = yield* sql`
          select state from conversations
          where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${conversationId}
            and state in ('HUMAN_REQUESTED', 'HUMAN_ACTIVE') for update`
        if (rows.length === 0) return false
        yield* sql`
          with place as (
            update conversations c set message_count = c.message_count + 1, ${activityAssignments(sql)}
            where c.tenant_id = ${scope.tenantId} and c.id = ${conversationId}
              and not exists (select from messages where tenant_id = ${scope.tenantId} and id = ${message.id})
            returning c.tenant_id, c.id, c.agent_id, c.message_count
          )
          insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, attachments)
          select ${message.id}, tenant_id, id, agent_id, message_count, 'user', ${message.content}, ${attachments}::jsonb from place`
        yield* sql`
          insert into conversation_artifacts (tenant_id, conversation_id, ref)
          select distinct ${scope.tenantId}, ${conversationId}, a.artifact
          from jsonb_to_recordset(${attachments}::jsonb) as a (artifact text)
          on conflict do nothing`
        return true
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** None when no message of the conversation has the file. */
    const attachment = ({ tenantId }: TenantScope, conversationId: ConversationId, artifact: ArtifactRef) =>
      sql`
        select a.artifact, a."mimeType", a.name, a.size
        from messages m, jsonb_to_recordset(m.attachments)
          as a (artifact text, "mimeType" text, name text, size int)
        where m.tenant_id = ${tenantId} and m.conversation_id = ${conversationId} and a.artifact = ${artifact} limit 1`.pipe(
        Rows.first(StoredAttachment),
        Effect.withSpan("WidgetMessageStore.attachment")
      )

    /** The last rating counts. False when the conversation has no such reply. */
    const rate = (
      { tenantId }: TenantScope,
      conversationId: ConversationId,
      {
        comment = null,
        messageId,
        rating
      }: Pick<FeedbackRequest, "messageId" | "rating"> & {
        readonly comment?: string | null
      }
    ) =>
      sql`
        with rated as (
          insert into message_feedback (tenant_id, message_id, conversation_id, rating, comment)
          select tenant_id, id, conversation_id, ${rating}::int, ${comment} from messages
          where tenant_id = ${tenantId} and conversation_id = ${conversationId} and id = ${messageId} and role = 'assistant'
          on conflict (tenant_id, message_id) do update set rating = excluded.rating, comment = excluded.comment, updated_at = now()
          returning tenant_id, message_id, conversation_id
        ),
        ${eventWrites(sql, {
          type: "feedback.given",
          // A changed rating is another event.
          key: sql`rated.message_id || ':' || extract(epoch from clock_timestamp())`,
          tenantId: sql`c.tenant_id`,
          agentId: sql`c.agent_id`,
          conversationId: sql`c.id`,
          ids: sql`jsonb_build_object('messageId', rated.message_id, 'rating', ${rating}::int)`,
          from: sql`rated join conversations c on c.tenant_id = rated.tenant_id and c.id = rated.conversation_id`
        })},
        run as (
          update agent_runs r set rating = ${rating}::smallint from rated
          where r.tenant_id = ${tenantId} and r.conversation_id = ${conversationId} and r.message_id = rated.message_id
        )
        select message_id from rated`.pipe(Rows.any, Effect.withSpan("WidgetMessageStore.rate"))

    return { page, findMessage, lastTurn, store, attachment, rate } as const
  })
}) {}
