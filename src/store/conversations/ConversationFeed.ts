/** Changes of a conversation since a given point, as its end user may see them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { RunEvent } from "../../domain/chat/AgentRun.ts"
import { Citation } from "../../domain/chat/ChatTurn.ts"
import type { GrantingCredential } from "../../domain/accounts/Access.ts"
import { ConversationState, Message } from "../../domain/conversations/Conversation.ts"
import type { ConversationId, MessageId, RunId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of messages of one statement. */
export const pageSize = 50
/** Maximum number of events of one run. */
const maxEvents = 1_000

const Head = Schema.Struct({
  state: ConversationState,
  /** Position of the last message; the first is 1. */
  position: Schema.Int,
  /** Position of the requested message; null when the conversation has no such message. */
  seen: Schema.NullOr(Schema.Int)
})

const Row = Schema.Struct({
  ...Message.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  position: Schema.Int,
  citations: Schema.Array(Citation)
})

const EventRow = Schema.Struct({
  ...Schema.Struct(RunEvent.fields).omit("timestamp", "payload").fields,
  timestamp: Schema.DateTimeUtcFromDate
})

export class ConversationFeedStore extends Effect.Service<ConversationFeedStore>()(
  "store/conversations/ConversationFeed",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** True while the credential on which a reader of the conversation `c` depends is valid. */
      const isCredentialValid = (credential: GrantingCredential | null) => {
        if (credential === null) return sql`true`
        if ("key" in credential) {
          return sql`exists (
          select from api_keys k where k.id = ${credential.key} and k.tenant_id = c.tenant_id and k.status = 'ACTIVE'
            and (k.expires_at is null or k.expires_at > now()))`
        }
        return sql`exists (
        select from user_sessions s join users u on u.tenant_id = s.tenant_id and u.id = s.user_id
        where s.tenant_id = c.tenant_id and s.token_hash = ${Buffer.from(credential.session, "base64url")}::bytea and s.expires_at > now()
          and u.tenant_id = c.tenant_id)`
      }

      /** None when the conversation was deleted, or the reader's credential was revoked. */
      const head = (
        { tenantId }: TenantScope,
        conversationId: ConversationId,
        seen: MessageId | null,
        credential: GrantingCredential | null
      ) =>
        sql`
          select c.state, c.message_count::int as position,
            (select m.position::int from messages m
              where m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.id = ${seen}) as seen
          from conversations c where c.tenant_id = ${tenantId} and c.id = ${conversationId} and ${isCredentialValid(credential)}`.pipe(
          Rows.first(Head),
          Effect.withSpan("ConversationFeedStore.head")
        )

      /** At most {@link pageSize} messages after `position`, oldest first. */
      const messagesAfter = ({ tenantId }: TenantScope, conversationId: ConversationId, position: number) =>
        sql`
          select id, role, content, created_at as "createdAt", position::int, citations
          from messages
          where tenant_id = ${tenantId} and conversation_id = ${conversationId} and position > ${position}
          order by position limit ${pageSize}`.pipe(
          Rows.all(Row),
          Effect.withSpan("ConversationFeedStore.messagesAfter")
        )

      /** The stored events of a run of this conversation after `sequence`; payloads are not read. */
      const eventsAfter = (
        { tenantId }: TenantScope,
        conversationId: ConversationId,
        runId: RunId,
        sequence: number
      ) =>
        sql`
          select e.run_id || ':' || e.sequence as id, e.run_id as "runId", e.sequence, e.type, e.status, e.label,
            e.at as timestamp
          from agent_run_events e join agent_runs r on r.tenant_id = e.tenant_id and r.id = e.run_id
          where r.tenant_id = ${tenantId} and r.conversation_id = ${conversationId} and r.id = ${runId} and e.sequence > ${sequence}
          order by e.sequence limit ${maxEvents}`.pipe(
          Rows.all(EventRow),
          Effect.withSpan("ConversationFeedStore.eventsAfter")
        )

      return { head, messagesAfter, eventsAfter } as const
    })
  }
) {}
