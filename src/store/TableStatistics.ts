/**
 * Statistics of tables that grow quickly: of a new database, of new partitions, and of imports. Connections keep the plans
 * of their statements. One that was made for an empty table, or for tenants that the statistics do not know, takes any
 * index that begins with the tenant, and reads all of the tenant's entries, until the table is analyzed. A server does so
 * by itself, a minute later: by then, at sixteen clients of a new database, settling a turn took 140 ms instead of 1.8
 * (docs/performance.md).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { forEveryTenant } from "../concurrency/TenantSession.ts"

/** Time between two checks. */
export const interval = Duration.seconds(5)

/** Size, in bytes, from which a plan for one row uses the primary key instead of reading the whole table. */
const minTableBytes = 128 * 1_024

/**
 * Changed rows, at least, and as a share of those of the last analysis, that call for another one. The server's own limit
 * is a tenth.
 */
const changed = { rows: 500, share: 0.5 }

const outdated = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string }>`
    select c.oid::regclass::text as name
    from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and (c.reltuples <= 0 or s.n_mod_since_analyze > greatest(${changed.rows}::int, ${changed.share}::float8 * c.reltuples))
      and pg_relation_size(c.oid) >= ${minTableBytes} and pg_has_role(c.relowner, 'usage')
    order by name`
)

/**
 * Analyzes tables of at least {@link minTableBytes} that had no rows when they were last analyzed, if ever, or that
 * have {@link changed} since. Only their owner may: without that role, the server's own analysis comes a minute later.
 */
export const analyzeGrown = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(
    outdated,
    Effect.forEach(({ name }) => sql.unsafe(`analyze ${name}`), { discard: true })
  )
).pipe(Effect.withTracerEnabled(false), forEveryTenant("migration"))
