/** The history of a conversation before a turn, as the statements that begin the turn read it. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { ConversationId, MessageId } from "../../domain/Ids.ts"

/** Most messages of history that a turn reads; the prompt keeps what fits the model's window. */
const historyLimit = 60

/** Which stored messages the turn answers. */
export interface Answered {
  readonly answers?: ReadonlyArray<MessageId>
  /** Nothing from the first of them on is history. */
  readonly regenerates?: boolean
}

/** Keys that were given later are below 1: the first episode has no beginning. */
const episodeStart = (sql: SqlClient.SqlClient, { tenantId }: TenantScope, conversationId: ConversationId) =>
  sql`select case episode_start when 0 then -9223372036854775807 else episode_start end
    from conversations where tenant_id = ${tenantId} and id = ${conversationId}`

/** A message that is still to be stored comes after all of them. */
const without = (sql: SqlClient.SqlClient, { answers, regenerates }: Answered) => {
  if (answers === undefined) return sql``
  return regenerates === true
    ? sql`and not exists (select from messages a where a.id = any(${answers}::text[])
        and a.tenant_id = messages.tenant_id and a.conversation_id = messages.conversation_id and a.position <= messages.position)`
    : sql`and id <> all(${answers}::text[])`
}

/**
 * The last messages of the episode, oldest first, without those that the turn answers. Messages that still wait for a
 * key are older than all that have one.
 */
export const historyOf = (
  sql: SqlClient.SqlClient,
  scope: TenantScope,
  conversationId: ConversationId,
  answered: Answered
) => sql`
  select coalesce(
    json_agg(json_build_object('role', m.role, 'content', m.content)
      order by m.position nulls first, m.created_at, m.id), '[]')
  from (
    (select role, content, position, created_at, id from messages
      where tenant_id = ${scope.tenantId} and conversation_id = ${conversationId} and position > (${episodeStart(sql, scope, conversationId)})
        ${without(sql, answered)}
      order by position desc limit ${historyLimit})
    union all
    (select role, content, position, created_at, id from messages
      where tenant_id = ${scope.tenantId} and conversation_id = ${conversationId} and position is null
        and (${episodeStart(sql, scope, conversationId)}) < 0
      order by created_at desc, id desc limit ${historyLimit})
    order by position desc nulls last, created_at desc, id desc limit ${historyLimit}
  ) m`
