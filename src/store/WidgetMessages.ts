/** What the widget reads and writes in one conversation: messages with their files, and opinions. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../domain/Access.ts"
import { StoredAttachment } from "../domain/Attachment.ts"
import { Citation } from "../domain/ChatTurn.ts"
import { Message } from "../domain/Conversation.ts"
import type { ConversationId, MessageId } from "../domain/Ids.ts"
import type { ArtifactRef } from "../domain/Source.ts"
import { Author, type FeedbackRequest } from "../domain/Widget.ts"
import { jsonbOf } from "./Jsonb.ts"

const Row = Schema.Struct({
  ...Message.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  position: Schema.Int,
  author: Schema.NullOr(Author),
  citations: Schema.Array(Citation),
  attachments: Schema.Array(StoredAttachment)
})

const encodeAttachments = jsonbOf(Schema.Array(StoredAttachment))

/** A message of the person that no turn answers. */
export interface NewMessage {
  readonly id: MessageId
  readonly content: string
  readonly attachments: ReadonlyArray<StoredAttachment>
}

export class WidgetMessageStore extends Effect.Service<WidgetMessageStore>()("store/WidgetMessages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** At most `limit` messages after the place `after`, oldest first. */
    const page = (conversationId: ConversationId, after: number, limit: number) =>
      SqlSchema.findAll({
        Request: Schema.Void,
        Result: Row,
        execute: () => sql`
          select id, role, content, created_at as "createdAt", position::int, author, citations, attachments
          from messages where conversation_id = ${conversationId} and position > ${after}
          order by position limit ${limit}`
      })(undefined).pipe(Effect.orDie, Effect.withSpan("WidgetMessageStore.page"))

    /** Stores what the person says while a human answers, once; false while the agent answers, or nobody does. */
    const store = Effect.fn("WidgetMessageStore.store")(
      function* (scope: AgentScope, conversationId: ConversationId, message: NewMessage) {
        const attachments = encodeAttachments(message.attachments)
        const rows = yield* sql`
          select state from conversations
          where agent_id = ${scope.agentId} and id = ${conversationId}
            and state in ('HUMAN_REQUESTED', 'HUMAN_ACTIVE') for update`
        if (rows.length === 0) return false
        yield* sql`
          with place as (
            update conversations c set message_count = c.message_count + 1, updated_at = now()
            where c.id = ${conversationId} and not exists (select from messages where id = ${message.id})
            returning c.id, c.agent_id, c.message_count
          )
          insert into messages (id, conversation_id, agent_id, position, role, content, attachments)
          select ${message.id}, id, agent_id, message_count, 'user', ${message.content}, ${attachments}::jsonb from place`
        yield* sql`
          insert into conversation_artifacts (conversation_id, ref)
          select distinct ${conversationId}, a.artifact from jsonb_to_recordset(${attachments}::jsonb) as a (artifact text)
          on conflict do nothing`
        return true
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** None when no message of the conversation has the file. */
    const attachment = (conversationId: ConversationId, artifact: ArtifactRef) =>
      SqlSchema.findOne({
        Request: Schema.Void,
        Result: StoredAttachment,
        execute: () => sql`
          select a.artifact, a."mimeType", a.name, a.size
          from messages m, jsonb_to_recordset(m.attachments)
            as a (artifact text, "mimeType" text, name text, size int)
          where m.conversation_id = ${conversationId} and a.artifact = ${artifact} limit 1`
      })(undefined).pipe(Effect.orDie, Effect.withSpan("WidgetMessageStore.attachment"))

    /** The last opinion counts. False when the conversation has no such reply. */
    const rate = (
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
        insert into message_feedback (message_id, rating, comment)
        select id, ${rating}::int, ${comment} from messages
        where conversation_id = ${conversationId} and id = ${messageId} and role = 'assistant'
        on conflict (message_id) do update set rating = excluded.rating, comment = excluded.comment, updated_at = now()
        returning message_id`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length === 1),
        Effect.withSpan("WidgetMessageStore.rate")
      )

    return { page, store, attachment, rate } as const
  })
}) {}
