/** Which delivered events are a tenant's. An account may have been another tenant's when an event was delivered. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { TenantScope } from "../../domain/accounts/Account.ts"

/** False for an event `i` that was delivered before the tenant configured the account that it has now. */
const isSinceConfigured = (sql: SqlClient.SqlClient, { tenantId }: TenantScope) => sql`
  not exists (
    select from channels own
    where own.channel = i.channel and own.external_id = i.account_id and own.tenant_id = ${tenantId} and own.active
      and own.created_at > i.received_at
  )`

/** True for an event `i` from which a message of the tenant was made. */
export const isOfMessage = (sql: SqlClient.SqlClient, { tenantId }: TenantScope) => sql`
  exists (
    select from jsonb_array_elements(i.event -> 'from') as name
    join end_user_aliases a on a.tenant_id = ${tenantId} and a.channel = i.channel
      and a.kind = name ->> 'kind' and a.value = name ->> 'value'
    join conversations c on c.tenant_id = a.tenant_id and c.end_user_id = a.end_user_id
    join messages m on m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.channel_message_id = i.message_id
  )`

/**
 * True for an event `i` of one of the tenant's accounts that is the tenant's: a message of the tenant was made from it,
 * or it came since the tenant configured the account, and no other tenant has a configuration of the account.
 */
export const isOwnEvent = (sql: SqlClient.SqlClient, scope: TenantScope) => sql`(
  (${isSinceConfigured(sql, scope)} and not exists (
    select from channels o
    where o.channel = i.channel and o.external_id = i.account_id and o.tenant_id <> ${scope.tenantId}
  )) or ${isOfMessage(sql, scope)})`
