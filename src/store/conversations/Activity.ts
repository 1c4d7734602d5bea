/**
 * When conversations were last active. Indexes sort them by `updated_at`. A change of it writes an entry into every index
 * of the table, so turns and messages set it every few minutes only, and `changed_at`, which no index has, each time
 * (docs/design/turns.md, What a settlement writes). Other changes set `updated_at` as usual.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"

/** How far `updated_at` may be behind. */
const behind = "interval '5 minutes'"

/** The assignments of a change of the conversation `c`. */
export const isActive = (sql: SqlClient.SqlClient): Fragment =>
  sql.literal(
    `changed_at = now(), updated_at = case when c.updated_at < now() - ${behind} then now() else c.updated_at end`
  )

/** The last change of a conversation. */
export const lastChange = (sql: SqlClient.SqlClient, alias = "c"): Fragment =>
  sql.literal(`greatest(${alias}.updated_at, ${alias}.changed_at)`)

/**
 * The least `updated_at` of the conversations `c` of a page: the first `limit` of those that meet `conditions`, by their
 * last change. A row whose `updated_at` is smaller was changed before all of them.
 */
export const pageBegins = (
  sql: SqlClient.SqlClient,
  from: Fragment,
  conditions: Fragment,
  limit: number
): Fragment => sql`
  coalesce((
    select min(updated_at) - ${sql.literal(behind)} from (
      select c.updated_at from ${from} where ${conditions} order by c.updated_at desc, c.id desc limit ${limit}
    ) newest having count(*) = ${limit}
  ), '-infinity')`
