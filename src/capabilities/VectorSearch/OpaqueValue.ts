/**
 * Values that the planner estimates by the mean of their column, for look-ups that a statement repeats for each row.
 *
 * By the statistics of a column, a tenant that came after the last analysis has no rows. Any index that begins with the
 * tenant then seems as cheap as the primary key, and each look-up may read all of the tenant's entries: a search of 900
 * chunks took 230 ms instead of 9.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"

/** The planner does not look into an uncorrelated subquery. */
export const opaque = (sql: SqlClient.SqlClient, value: string): Fragment => sql`(select ${value}::text)`
