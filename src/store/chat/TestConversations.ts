/** Test conversations of the team, in which turns may be removed. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { ConversationId, type RunId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

const Found = Schema.Struct({ id: ConversationId })

export class TestConversationStore extends Effect.Service<TestConversationStore>()(
  "store/chat/TestConversations",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** None if the run does not belong to a test conversation of the team. */
      const conversationOf = ({ agentId, tenantId }: AgentScope, runId: RunId) =>
        sql`
          select c.id from agent_runs r join conversations c on c.id = r.conversation_id
          where r.tenant_id = ${tenantId} and r.agent_id = ${agentId} and r.id = ${runId}
            and c.tenant_id = ${tenantId} and c.agent_id = ${agentId} and c.channel = 'test'`.pipe(
          Rows.first(Found),
          Effect.map(Option.map(({ id }) => id)),
          Effect.withSpan("TestConversationStore.conversationOf")
        )

      /**
       * Removes the message of the turn `runId` and all later messages. Its trace stays. False while a turn of the
       * conversation is running.
       */
      const rewind = Effect.fn("TestConversationStore.rewind")(
        function* ({ agentId, tenantId }: AgentScope, id: ConversationId, runId: RunId) {
          const held = yield* sql`
            select id from conversations
            where tenant_id = ${tenantId} and agent_id = ${agentId} and id = ${id} and tickets = served for update`
          if (held.length === 0) return false
          yield* sql`
            with first as (
              select m.position from messages m
              join agent_runs r on r.tenant_id = m.tenant_id and r.user_message_id = m.id
              where m.tenant_id = ${tenantId} and r.id = ${runId} and m.conversation_id = ${id}
            ),
            shortened as (
              update conversations c set message_count = first.position - 1, updated_at = now()
              from first where c.tenant_id = ${tenantId} and c.id = ${id}
            )
            delete from messages m using first
            where m.tenant_id = ${tenantId} and m.conversation_id = ${id} and m.position >= first.position`
          return true
        },
        sql.withTransaction,
        Effect.orDie
      )

      return { conversationOf, rewind } as const
    })
  }
) {}
