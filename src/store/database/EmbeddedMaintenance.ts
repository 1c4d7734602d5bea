/**
 * Maintenance that a PostgreSQL server does in background processes. The embedded engine is one process and has none:
 * without checkpoints its log grows without bound and the next start reads all of it; without VACUUM, tables with many
 * changes grow; without ANALYZE, plans are made for empty tables.
 *
 * Each statement blocks all others for some tens of milliseconds, so it runs only when needed, by the thresholds of a
 * server's default settings.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Bytes of log after which a checkpoint runs. */
const maxLogBytes = 48 * MiB

/** Time between two checks. */
export const interval = "15 seconds"

/**
 * Age, in transactions, at which the ids of the oldest rows are frozen. Ids wrap around at about two thousand million.
 */
const maxTransactionAge = 200_000_000

interface Table {
  readonly name: string
  readonly statement: string
}

/** Tables for which a server would have run VACUUM or ANALYZE, with the statement. */
const tablesToMaintain = (sql: SqlClient) => sql<Table>`
  with measured as (
    select format('%I.%I', s.schemaname, s.relname) as name,
      age(c.relfrozenxid) > ${maxTransactionAge} as old,
      s.n_dead_tup > 50 + 0.2 * rows or s.n_ins_since_vacuum > 1000 + 0.2 * rows as worn,
      s.n_mod_since_analyze > 50 + 0.1 * rows as changed
    from pg_stat_all_tables s
    join pg_class c on c.oid = s.relid and c.relkind = 'r'
    cross join lateral (select greatest(c.reltuples, 0) as rows) known
  )
  select name,
    case when old then 'vacuum (freeze, analyze) ' when worn then 'vacuum (analyze) ' else 'analyze ' end as statement
  from measured where old or worn or changed order by name`

/** Checks once. */
export const maintainOnce = (sql: SqlClient) =>
  Effect.gen(function* () {
    const [written] = yield* sql<{ readonly bytes: number }>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 as bytes from pg_control_checkpoint()`
    if ((written?.bytes ?? 0) > maxLogBytes) yield* sql`checkpoint`
    // Otherwise statistics are flushed at most once a second, and only by another statement.
    yield* sql`select pg_stat_force_next_flush()`
    // Other statements can run between two tables.
    for (const { name, statement } of yield* tablesToMaintain(sql)) yield* sql.unsafe(`${statement}${name}`)
  }).pipe(Effect.withTracerEnabled(false))

/** Checks at intervals until the scope closes. A failure is logged, and retried at the next interval. */
export const maintain = (sql: SqlClient) =>
  maintainOnce(sql).pipe(
    forEveryTenant("migration"),
    Effect.catchAllCause((cause) => Effect.logDebug("The upkeep of the embedded database failed", cause)),
    Effect.repeat(Schedule.spaced(interval)),
    Effect.delay(interval),
    Effect.forkScoped
  )
