/**
 * Analyzes tables that grow quickly: those of a new database, new partitions, and tables that were imported into.
 *
 * Connections keep the plans of their statements. A plan that was made for an empty table, or for tenants that the
 * statistics do not know, may use any index that begins with the tenant, and then reads all of the tenant's entries,
 * until the table is analyzed. A server analyzes it by itself, but a minute later. Until then, with sixteen clients of
 * a new database, settling a turn took 140 ms instead of 1.8 (docs/performance.md).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { forEveryTenant } from "../concurrency/TenantSession.ts"

/** Time between two checks. */
export const interval = Duration.seconds(5)

/** Size in bytes from which the plan for one row uses the primary key instead of reading the whole table. */
const minTableBytes = 128 * 1_024

/**
 * A table is analyzed again when at least this many rows have changed, and this share of its rows at the last analysis.
 * The server's own share is a tenth.
 */
const minChanged = { rows: 500, share: 0.5 }

const outdatedTables = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string }>`
    select c.oid::regclass::text as name
    from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
    where c.relkind = 'r' and c.relnamespace = to_regnamespace(quote_ident(current_schema()))
      and (c.reltuples <= 0 or s.n_mod_since_analyze > greatest(${minChanged.rows}::int, ${minChanged.share}::float8 * c.reltuples))
      and pg_relation_size(c.oid) >= ${minTableBytes} and pg_has_role(c.relowner, 'usage')
    order by name`
)

/**
 * Analyzes tables of at least {@link minTableBytes} that were never analyzed, were empty then, or have changed since by
 * {@link minChanged}. Only the owner of a table may analyze it.
 */
export const analyzeGrown = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(
    outdatedTables,
    Effect.forEach(({ name }) => sql.unsafe(`analyze ${name}`), { discard: true })
  )
).pipe(Effect.withTracerEnabled(false), forEveryTenant("migration"))
