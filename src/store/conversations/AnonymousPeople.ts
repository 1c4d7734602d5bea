/** Removes people without an external id when their conversations and sessions are gone. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { EndUserId, TenantId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

const Person = Schema.Struct({ tenantId: TenantId, id: EndUserId })
export type Person = typeof Person.Type

const isAmong = (sql: SqlClient.SqlClient, people: ReadonlyArray<Person>) => sql`
  (e.tenant_id, e.id) in (
    select * from unnest(${people.map(({ tenantId }) => tenantId)}::text[], ${people.map(({ id }) => id)}::text[]))`

/**
 * Removes those of `people` that have no external id, alias, conversation or session. Needs a transaction. A person who
 * starts a conversation or session meanwhile is kept.
 */
export const removeUnreachable = Effect.fn("removeUnreachable")(function* (
  sql: SqlClient.SqlClient,
  people: ReadonlyArray<Person>
) {
  if (people.length === 0) return
  // While their rows are locked, they cannot start a conversation. The second statement sees those that began before.
  const locked = yield* sql`/* every tenant: sweep */
    select e.tenant_id as "tenantId", e.id from end_users e
    where ${isAmong(sql, people)} and tenant_is_swept(e.tenant_id) and e.external_id is null order by e.tenant_id, e.id for update skip locked`.pipe(
    Rows.all(Person)
  )
  if (locked.length === 0) return
  yield* sql`/* every tenant: sweep */
    delete from end_users e
    where ${isAmong(sql, locked)} and tenant_is_swept(e.tenant_id)
      and not exists (select from conversations c where c.tenant_id = e.tenant_id and c.end_user_id = e.id)
      and not exists (select from end_user_aliases a where a.tenant_id = e.tenant_id and a.end_user_id = e.id)
      and not exists (select from widget_sessions s where s.tenant_id = e.tenant_id and s.end_user_id = e.id)`
})
