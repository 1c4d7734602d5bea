/**
 * Partitions of the tables of traces: one for each week (UTC, from Monday), by the time with which the id of a run
 * begins. A week is dropped as a whole. That reads no row and leaves nothing to vacuum, while deleting its rows would
 * write log for each of them (docs/design/decisions/0011-weeks-of-traces.md).
 *
 * Rows of a week without a partition are in the default partition, so an insert never fails because a partition is
 * missing.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { minRunIdAt } from "../domain/Ids.ts"
import { forEveryTenant } from "../concurrency/TenantSession.ts"
import { sqlStateOf, isCatalogueConflict } from "./database/Failure.ts"

/** The partitioned tables. Rows of `run_passages` refer to `passages`, which are freed after a week was dropped. */
const tables = ["agent_run_events", "run_passages"] as const
type Table = (typeof tables)[number]

/** Number of weeks that exist in advance, in addition to the current one. */
const weeksAhead = 4
/** Maximum time for which turns may wait behind the lock of one change. The next call tries again. */
const lockTimeout = Duration.millis(500)

const weekMillis = Duration.toMillis("1 week")
/** 1970-01-05 was a Monday. */
const firstMonday = 4 * Duration.toMillis("1 day")

/** The beginning of the week, `weeksLater` weeks after the one of `millis`. */
const weekOf = (millis: number, weeksLater: number): DateTime.Utc =>
  DateTime.unsafeMake(
    (Math.floor((millis - firstMonday) / weekMillis) + weeksLater) * weekMillis + firstMonday
  )

interface Partition {
  readonly table: Table
  readonly name: string
  /** The lowest id of its runs; empty without a lower bound. */
  readonly from: string
  /** All ids of its runs are below this one; null for the default partition. */
  readonly below: string | null
}

/** SQLSTATE when the default partition has rows of the week. */
const checkViolation = "23514"

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

const readPartitions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly table: Table; readonly name: string; readonly bound: string }>`
    select p.relname as "table", c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_inherits i join pg_class p on p.oid = i.inhparent join pg_class c on c.oid = i.inhrelid
    where p.relnamespace = to_regnamespace(quote_ident(current_schema())) and p.relname = any(${[...tables]}::text[])
    order by c.relname`
  return rows.map(({ bound, name, table }): Partition => ({
    table,
    name,
    from: / FROM \('(?<from>[^']*)'\)/u.exec(bound)?.groups?.["from"] ?? "",
    below: / TO \('(?<below>[^']*)'\)$/u.exec(bound)?.groups?.["below"] ?? null
  }))
})

/** Whether the database's role owns the tables. Any other role only writes rows, which go to the default partition. */
const isOwner = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ readonly mine: boolean | null }>`
    select bool_and(pg_has_role(relowner, 'usage')) as mine from pg_class
    where relnamespace = to_regnamespace(quote_ident(current_schema())) and relname = any(${[...tables]}::text[])`
  return found?.mine === true
})

/** Runs `change` in a transaction with the lock of partitions. False if another session has a lock that it needs. */
const withPartitionLock = (change: Effect.Effect<void, SqlError, SqlClient.SqlClient>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const work = Effect.gen(function* () {
      const [session] = yield* sql<{ readonly mine: boolean }>`
        select set_config('lock_timeout', ${String(Duration.toMillis(lockTimeout))}, true),
          pg_try_advisory_xact_lock(hashtextextended('partitions', 0)) as mine`
      if (session?.mine !== true) return false
      yield* change
      return true
    })
    return yield* sql
      .withTransaction(work)
      .pipe(Effect.catchIf(isCatalogueConflict, () => Effect.succeed(false)))
  })

/** Attaching takes a weaker lock of the parent than `create table … partition of`. */
const addPartition = (table: Table, name: string, from: string, below: string) =>
  withPartitionLock(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [found] = yield* sql<{
        readonly there: boolean
      }>`select to_regclass(${name}) is not null as there`
      if (found?.there === true) return
      yield* sql`create table ${sql(name)} (like ${sql(table)} including all)`
      // It is reached only through its parent, whose policy applies.
      yield* sql`alter table ${sql(name)} enable row level security`
      yield* sql.unsafe(
        `alter table ${table} attach partition ${name} for values from (${literal(from)}) to (${literal(below)})`
      )
    })
  ).pipe(
    Effect.catchIf(
      (error) => sqlStateOf(error) === checkViolation,
      () =>
        Effect.as(
          Effect.logWarning(
            `Rows of a week of ${table} are in its default partition, and are deleted one by one`
          ),
          false
        )
    )
  )

/**
 * Creates the partitions of this week and the next ones, if the database's role owns the tables. One that cannot be
 * created now is created by a later call. Any number of processes may call it at the same time.
 */
export const addWeeks: Effect.Effect<void, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  if (!(yield* isOwner)) return
  const now = yield* Clock.currentTimeMillis
  const all = yield* readPartitions
  for (const table of tables) {
    for (let week = 0; week <= weeksAhead; week++) {
      const begin = weekOf(now, week)
      const below = minRunIdAt(weekOf(now, week + 1))
      // The first partition may end within the week.
      const ends = all.flatMap((partition) =>
        partition.table === table && partition.below !== null && partition.from < below
          ? [partition.below]
          : []
      )
      const from = [minRunIdAt(begin), ...ends].toSorted().at(-1) ?? ""
      const name = `${table}_${DateTime.formatIsoDateUtc(begin).replaceAll("-", "")}`
      if (from < below) yield* addPartition(table, name, from, below)
    }
  }
}).pipe(forEveryTenant("migration"), Effect.withSpan("Partitions.addWeeks"))

const isEmpty = (name: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<{ readonly some: boolean }>`select exists (select from ${sql(name)}) as some`
    return found?.some !== true
  })

/** Whether a tenant is being moved. A move does not notice a dropped week, and both sides must have the same rows. */
const isMoving = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ readonly some: boolean }>`select exists (select from tenant_moves) as some`
  return found?.some === true
})

/** Drops a partition if it is empty. Without `onlyIfEmpty`, also one with rows, unless a tenant is being moved. */
const dropPartition = ({ name, table }: Partition, onlyIfEmpty: boolean) =>
  withPartitionLock(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // Waits for writers through the parent, and blocks new ones.
      yield* sql`lock table ${sql(table)} in access exclusive mode`
      if ((onlyIfEmpty || (yield* isMoving)) && !(yield* isEmpty(name))) return
      yield* sql`drop table if exists ${sql(name)}`
      if (table === "run_passages")
        yield* sql`
          insert into passage_sweep (one) values (true) on conflict (one) do update set seen_tenant = '', seen_hash = ''`
    })
  )

/**
 * Drops weeks that end before `expiredBefore`, because no tenant keeps their rows (null: none), and empty weeks that
 * end before `emptyBefore`. Partitions that other sessions have locked are dropped by a later call.
 */
export const dropWeeks = ({
  emptyBefore,
  expiredBefore
}: {
  readonly emptyBefore: DateTime.Utc
  readonly expiredBefore: DateTime.Utc | null
}) =>
  Effect.gen(function* () {
    if (!(yield* isOwner)) return
    const firstKept = expiredBefore === null ? "" : minRunIdAt(expiredBefore)
    const firstRecent = minRunIdAt(emptyBefore)
    for (const partition of yield* readPartitions) {
      if (partition.below === null || partition.below > firstRecent) continue
      const isKept = partition.below > firstKept
      if (isKept && !(yield* isEmpty(partition.name))) continue
      yield* dropPartition(partition, isKept)
    }
  }).pipe(forEveryTenant("migration"), Effect.withSpan("Partitions.dropWeeks"))
