/** Conversations by the id that a client chose for its chat. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import type { ChatId } from "../../domain/chat/UiChat.ts"
import { ConversationId, EndUserId, MessageId } from "../../domain/Ids.ts"
import { sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import { violates } from "../database/Failure.ts"
import * as Rows from "../Rows.ts"

const Asked = Schema.Struct({ id: MessageId, content: Schema.String })

const Chat = Schema.Struct({
  conversationId: ConversationId,
  endUserId: EndUserId,
  externalId: Schema.NullOr(Schema.String),
  /** The last message of the end user, answered or not; null if there is none for the agent to answer. */
  asked: Schema.NullOr(Asked)
})

/** Another request started the conversation of the same chat at the same time. */
export class ChatTaken extends Data.TaggedError("ChatTaken") {}

/** True when another request has started the chat. No other row of a turn can exist already. */
export const isChatTaken = violates("conversations_chat")

/** Whether the conversation `c` belongs to the chat, for a key with this scope. */
export const isOfChat = (sql: SqlClient.SqlClient, scope: ReadScope, id: ChatId) => sql`
  c.tenant_id = ${scope.tenantId} and c.agent_id = ${scope.agentId} and c.chat_id = ${id}
    and md5(coalesce(c.source_scope::text, '')) = md5(coalesce(${sourceScopeJson(scope)}::jsonb::text, ''))`

/** None before the chat's first message. */
export const findChat = (sql: SqlClient.SqlClient, scope: ReadScope, id: ChatId) =>
  sql`
    select c.id as "conversationId", c.end_user_id as "endUserId", e.external_id as "externalId", coalesce(
      (select json_build_object('id', r.user_message_id, 'content', r.user_message) from agent_runs r
        where r.tenant_id = c.tenant_id and r.conversation_id = c.id and r.status = 'running' order by r.ticket desc limit 1),
      (select json_build_object('id', m.id, 'content', m.content) from messages m
        where m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.role = 'user' and m.position > c.episode_start
        order by m.position desc limit 1)
    ) as asked
    from conversations c join end_users e on e.tenant_id = c.tenant_id and e.id = c.end_user_id
    where ${isOfChat(sql, scope, id)}`.pipe(Rows.first(Chat), Effect.withSpan("Turns.chat"))
