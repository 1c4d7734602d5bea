/** What concerns the person that a visitor's token names, and what concerns another one. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"

interface Visitor extends TenantScope {
  readonly visitor?: string
}

/** False for the person `e` if the token names the visitor, and the person has another external id. */
export const mayBeVisitor = (sql: SqlClient.SqlClient, { visitor }: Pick<ReadScope, "visitor">) =>
  visitor === undefined ? sql`true` : sql`coalesce(e.external_id = ${visitor}, true)`

/** False for the conversation `c` if the token names a visitor who is not its person. For lists, which need no id. */
export const isOfVisitor = (sql: SqlClient.SqlClient, { visitor }: Visitor) =>
  visitor === undefined
    ? sql`true`
    : sql`exists (
        select 1 from end_users e
        where e.tenant_id = c.tenant_id and e.id = c.end_user_id and e.external_id = ${visitor})`

/**
 * False for a conversation of another person than the one that the visitor's token names. A person without an external
 * id may be the visitor, who knows the id of the conversation. `conversationId` is a column or an id.
 */
export const mayBeOfVisitor = (
  sql: SqlClient.SqlClient,
  { tenantId, visitor }: Visitor,
  conversationId: Fragment
) =>
  visitor === undefined
    ? sql`true`
    : sql`not exists (
        select 1 from conversations o join end_users e on e.tenant_id = o.tenant_id and e.id = o.end_user_id
        where o.tenant_id = ${tenantId} and o.id = ${conversationId} and e.external_id <> ${visitor})`
