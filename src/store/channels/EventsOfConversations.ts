/** Deletes the events from which messages of conversations were made, before these conversations are deleted. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { TenantScope } from "../../domain/accounts/Account.ts"

/** `condition` is on events `i` and conversations `c`. */
export const deleteEventsOf = (
  sql: SqlClient.SqlClient,
  { tenantId }: TenantScope,
  condition: Fragment
) => sql`
  delete from channel_inbox i using conversations c
  join messages m on m.tenant_id = c.tenant_id and m.conversation_id = c.id
  left join channels ch on ch.tenant_id = c.tenant_id and ch.id = c.channel_id
  where c.tenant_id = ${tenantId} and ${condition} and i.channel = c.channel and i.message_id = m.channel_message_id
    and i.account_id = coalesce(ch.external_id, i.account_id)`
