/**
 * What a PostgreSQL server does beside its sessions, and the embedded engine, which is one process, never would: without
 * checkpoints its log grows for ever and the next start reads all of it; without VACUUM so do the tables that change most;
 * and without ANALYZE plans are made for tables as they were when they were empty.
 *
 * Each statement blocks all others for some tens of milliseconds, so it runs only when there is reason for it: by the
 * measure of a server's own settings.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"

/** Bytes of log after which a checkpoint is worth it. */
const maxLogBytes = 48 * 1_048_576

/** How often is looked. */
export const interval = "15 seconds"

/** Transactions until the ids of the oldest rows are frozen; they run out at two thousand millions. */
const oldest = 200_000_000

interface Table {
  readonly name: string
  readonly statement: string
}

/** Tables that a server would see to by now, each with what it would run. */
const neglected = (sql: SqlClient) => sql<Table>`
  with measured as (
    select format('%I.%I', s.schemaname, s.relname) as name,
      age(c.relfrozenxid) > ${oldest} as old,
      s.n_dead_tup > 50 + 0.2 * rows or s.n_ins_since_vacuum > 1000 + 0.2 * rows as worn,
      s.n_mod_since_analyze > 50 + 0.1 * rows as changed
    from pg_stat_all_tables s
    join pg_class c on c.oid = s.relid and c.relkind = 'r'
    cross join lateral (select greatest(c.reltuples, 0) as rows) known
  )
  select name,
    case when old then 'vacuum (freeze, analyze) ' when worn then 'vacuum (analyze) ' else 'analyze ' end as statement
  from measured where old or worn or changed order by name`

/** Looks once; `log` is the bytes that one lets be. */
export const look = (sql: SqlClient, log = maxLogBytes) =>
  Effect.gen(function* () {
    const [written] = yield* sql<{ readonly bytes: number }>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 as bytes from pg_control_checkpoint()`
    if ((written?.bytes ?? 0) > log) yield* sql`checkpoint`
    // What has been counted is else told once a second at most, and only when something else is asked.
    yield* sql`select pg_stat_force_next_flush()`
    // Others have their turn between two tables.
    for (const { name, statement } of yield* neglected(sql)) yield* sql.unsafe(`${statement}${name}`)
  }).pipe(Effect.withTracerEnabled(false))

/** Looks again and again until the scope closes; what fails is tried at the next time. */
export const keep = (sql: SqlClient) =>
  look(sql).pipe(
    forEveryTenant("migration"),
    Effect.catchAllCause((cause) => Effect.logDebug("The upkeep of the embedded database failed", cause)),
    Effect.repeat(Schedule.spaced(interval)),
    Effect.delay(interval),
    Effect.forkScoped
  )
