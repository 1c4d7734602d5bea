/**
 * When conversations were last active. Indexes sort them by `updated_at`, and a change of it writes an entry into every
 * index of the table. So turns and messages set `changed_at`, which is in no index, every time, but `updated_at` only
 * every few minutes (docs/design/turns.md, What a settlement writes). Other changes set `updated_at` every time.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"

/** How far `updated_at` may be behind the last change. */
const maxLag = "interval '5 minutes'"

/** Assignments for an update of the conversation `c`: it is active now. */
export const activityAssignments = (sql: SqlClient.SqlClient): Fragment =>
  sql.literal(
    `changed_at = now(), updated_at = case when c.updated_at < now() - ${maxLag} then now() else c.updated_at end`
  )

/** The time of the last change of a conversation. */
export const lastChange = (sql: SqlClient.SqlClient, alias = "c"): Fragment =>
  sql.literal(`greatest(${alias}.updated_at, ${alias}.changed_at)`)

/**
 * A lower bound for `updated_at` of the conversations `c` of a page: the `limit` most recently changed ones that meet
 * `conditions`. A row whose `updated_at` is lower was changed before all of them.
 */
export const minUpdatedAt = (
  sql: SqlClient.SqlClient,
  from: Fragment,
  conditions: Fragment,
  limit: number
): Fragment => sql`
  coalesce((
    select min(updated_at) - ${sql.literal(maxLag)} from (
      select c.updated_at from ${from} where ${conditions} order by c.updated_at desc, c.id desc limit ${limit}
    ) newest having count(*) = ${limit}
  ), '-infinity')`
