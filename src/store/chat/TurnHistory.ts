/** The history of a conversation before a turn, for the statements that start the turn. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { ConversationId, MessageId } from "../../domain/Ids.ts"

/** Maximum number of history messages that a turn reads. The prompt keeps those that fit the model's window. */
const historyLimit = 60

/** The stored messages that the turn answers. */
export interface Answered {
  readonly answers?: ReadonlyArray<MessageId>
  /** If true, the history ends before the first of them. */
  readonly regenerates?: boolean
}

/** The key after which the episode begins. The first one has no lower bound: keys assigned later are below 1. */
const episodeStart = (sql: SqlClient.SqlClient, { tenantId }: TenantScope, conversationId: ConversationId) =>
  sql`select case episode_start when 0 then -9223372036854775807 else episode_start end
    from conversations where tenant_id = ${tenantId} and id = ${conversationId}`

/** Excludes the messages that the turn answers. A message that is not stored yet is not in the history. */
const excludeAnswered = (sql: SqlClient.SqlClient, { answers, regenerates }: Answered) => {
  if (answers === undefined) return sql``
  return regenerates === true
    ? sql`and not exists (select from messages a where a.id = any(${answers}::text[])
        and a.tenant_id = messages.tenant_id and a.conversation_id = messages.conversation_id and a.position <= messages.position)`
    : sql`and id <> all(${answers}::text[])`
}

/**
 * The last messages of the episode, oldest first, without those that the turn answers. Messages without a key are older
 * than all that have one.
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
      where tenant_id = ${opaque(sql, scope.tenantId)} and conversation_id = ${conversationId} and position > (${episodeStart(sql, scope, conversationId)})
        ${excludeAnswered(sql, answered)}
      order by position desc limit ${historyLimit})
    union all
    (select role, content, position, created_at, id from messages
      where tenant_id = ${opaque(sql, scope.tenantId)} and conversation_id = ${conversationId} and position is null
        and (${episodeStart(sql, scope, conversationId)}) < 0
      order by created_at desc, id desc limit ${historyLimit})
    order by position desc nulls last, created_at desc, id desc limit ${historyLimit}
  ) m`
