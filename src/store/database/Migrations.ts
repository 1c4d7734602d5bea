/**
 * Applies `migrations/NNNN_name.sql` in order, on every engine, while other processes use the database.
 *
 * Pending files commit together, in one transaction. A file whose first line is `-- spoke: own transaction` commits
 * separately, after those before it. One with `-- spoke: no transaction` has statements that can be repeated, each of
 * them a step, unless its tables are empty. One process migrates at a time, by an advisory lock that ends with its
 * session. The others poll for it, because a session that waits in the database would block a concurrent index build.
 *
 * A statement that waits for a lock blocks everyone behind it. So it gives up after `lockTimeout`, lets them pass, and
 * tries again. Statements that block neither readers nor writers may wait longer.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Holders from "./LockHolders.ts"
import { sqlStateOf, isLockConflict } from "./Failure.ts"
import { isPooled, onOwnSession } from "../OwnSession.ts"
import { concurrentIndex, load, MigrationError, type MigrationFile, stateError } from "./MigrationFiles.ts"
import { statementsOf } from "./SqlText.ts"
import { effectsOf } from "./StatementEffects.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"

export interface MigrateOptions {
  /** The table of applied migrations. */
  readonly table?: string
  /** Maximum time for which a statement may block others that queue behind its lock. */
  readonly lockTimeout?: Duration.DurationInput
  /** A step that did not get its locks within this time fails. */
  readonly giveUpAfter?: Duration.DurationInput
}

const mainTable = "migrations"

interface Options {
  readonly table: string
  readonly lockTimeout: Duration.Duration
  readonly giveUpAfter: Duration.Duration
}

const optionsOf = ({ giveUpAfter, lockTimeout, table }: MigrateOptions): Options => ({
  table: table ?? mainTable,
  lockTimeout: Duration.decode(lockTimeout ?? "500 millis"),
  giveUpAfter: Duration.decode(giveUpAfter ?? "5 minutes")
})

/** Another process migrates. */
class Busy extends Data.TaggedError("Busy") {}

/** A lock was not available in time. `error` is reported when no further attempt is made. */
class LockUnavailable extends Data.TaggedError("LockUnavailable")<{ readonly error: MigrationError }> {}

type Applied = readonly [id: number, name: string]

interface Row {
  readonly migration_id: number
  readonly name: string
  readonly checksum: string | null
}

/** Where the role's `search_path` finds the table. `isOurs`: it has our columns, unlike one of another program. */
const placeOf = (table: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly schema: string; readonly current: string; readonly isOurs: boolean }>`
      select n.nspname as schema, current_schema()::text as current,
        exists (select from pg_attribute where attrelid = c.oid and attname = 'migration_id') as "isOurs"
      from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(${table})`
  )

/** The applied migrations; null if the schema in which tables are created has no list of them. */
const rowsOf = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [place] = yield* placeOf(table)
    if (place === undefined) return null
    const { current, isOurs, schema } = place
    if (schema === current && !isOurs)
      return yield* stateError(
        `The table ${table} of the schema ${schema} is another program's. Give Spoke a database, or a schema that comes ` +
          "first in its role's search_path. Nothing was changed."
      )
    if (schema !== current && isOurs && table === mainTable)
      return yield* stateError(
        `Spoke's tables are in the schema ${schema}, but the role's search_path begins with ${current}. ` +
          `Put ${schema} first (ALTER ROLE … SET search_path), or use another database for a second installation. Nothing was changed.`
      )
    if (schema !== current) return null
    // A table from before 0.1.0 may not have the column.
    return yield* sql<Row>`
      select migration_id, name, to_jsonb(applied) ->> 'checksum' as checksum from ${sql(table)} as applied
      order by migration_id`
  })

/** Every applied migration must match one of ours. Otherwise the database belongs to another version of the program. */
const refuseUnknownMigrations = (files: ReadonlyArray<MigrationFile>, rows: ReadonlyArray<Row>) =>
  Effect.forEach(
    rows,
    ({ checksum, migration_id: id, name }) => {
      const ours = files[id - 1]
      if (ours === undefined)
        return stateError(`The database has migration ${id}_${name}, which this version does not know.`)
      if (ours.name !== name && id === 1)
        return stateError(
          `The database was made by a version from before 0.1.0 (its first migration is ${name}), which no release upgrades. ` +
            "Nothing was changed. Name an empty database (DATABASE_URL), or another data directory (SPOKE_DATA_DIR)."
        )
      if (ours.name !== name)
        return stateError(`Migration ${id} of the database is ${name}, of this version ${ours.name}.`)
      if (checksum !== ours.checksum)
        return stateError(
          `The migration ${ours.file} has been changed since it was applied to this database. ` +
            "Put the file back as it was, and let a new one make the change."
        )
      return Effect.void
    },
    { discard: true }
  )

/** The pending files. Fails if files and database do not match. */
const readPending = (files: ReadonlyArray<MigrationFile>, table: string) =>
  Effect.gen(function* () {
    const rows = yield* rowsOf(table)
    yield* refuseUnknownMigrations(files, rows ?? [])
    const applied = new Set(rows?.map(({ migration_id: id }) => id))
    return { prepared: rows !== null, pending: files.filter(({ id }) => !applied.has(id)) }
  })

const namesOf = (files: ReadonlyArray<MigrationFile>) => files.map(({ id, name }): Applied => [id, name])

const recordApplied = (files: ReadonlyArray<MigrationFile>, table: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`insert into ${sql(table)} ${sql.insert(files.map(({ checksum, id, name }) => ({ migration_id: id, name, checksum })))}`
  )

/** The key of the migration lock, for one database and schema. */
const lockKey = (sql: SqlClient.SqlClient, table: string) =>
  sql`hashtextextended('spoke ' || coalesce(current_schema(), '') || ' ' || ${table}, 0)`

const lockError = (
  file: string,
  error: SqlError,
  holders: Effect.Effect.Success<Holders.LastHolders>,
  progress: string
) =>
  new MigrationError({
    reason: "locked",
    message:
      `The migration ${file} did not get a lock that it needs (SQLSTATE ${sqlStateOf(error) ?? "55P03"}). ${Holders.describeHolders(holders)} ` +
      `${Holders.remedyFor(holders)}, or wait for its end; then start again. ${progress}`,
    cause: error
  })

/** Converts the error of a statement of `file`. `progress` says which statements were applied. */
const toMigrationError =
  (file: string, holders: Holders.LastHolders, progress: string) =>
  (error: SqlError): Effect.Effect<never, LockUnavailable | MigrationError> =>
    isLockConflict(error)
      ? Effect.flatMap(
          holders,
          (found) => new LockUnavailable({ error: lockError(file, error, found, progress) })
        )
      : new MigrationError({
          reason: "failed",
          message: `The migration ${file} failed: ${error.message}`,
          cause: error
        })

const milliseconds = (duration: Duration.Duration) =>
  String(Math.max(1, Math.round(Duration.toMillis(duration))))

/** Runs `work` once, in a transaction that holds the migration lock. */
const inTransaction = <A, E, R>(
  { lockTimeout, table }: Options,
  work: (holders: Holders.LastHolders) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const watched = yield* Holders.watch(Duration.times(lockTimeout, 0.3))
    const whole = Effect.gen(function* () {
      // Building an index of a large table takes longer than the statement time-out of requests.
      const [session] = yield* sql<{ readonly mine: boolean; readonly pid: number }>`
        select set_config('statement_timeout', '0', true), set_config('lock_timeout', ${milliseconds(lockTimeout)}, true),
          pg_backend_pid() as pid, pg_try_advisory_xact_lock(${lockKey(sql, table)}) as mine`
      if (session?.mine !== true) return yield* new Busy()
      yield* watched.setWaiting(session.pid)
      return yield* work(watched.holders)
    })
    return yield* sql.withTransaction(whole)
  }).pipe(Effect.scoped)

/** Creates or updates the table of applied migrations and checksums. */
const prepare = (options: Options) =>
  inTransaction(options, (holders) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        create table if not exists ${sql(options.table)} (
          migration_id integer primary key,
          created_at timestamp with time zone not null default now(),
          name text not null,
          checksum text not null
        )`
    }).pipe(
      Effect.catchIf(
        isLockConflict,
        toMigrationError("of the list of migrations", holders, "Nothing was changed.")
      )
    )
  )

/** True when none of the file's tables has rows, as in a new database. Then its locks block nobody. */
const hasNoRows = ({ text }: MigrationFile) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const names = statementsOf(text).flatMap((statement) => effectsOf(statement).map(({ table }) => table))
    const filled = yield* Effect.exists(new Set(names), (name) =>
      Effect.gen(function* () {
        const [found] = yield* sql<{ readonly table: string | null }>`
          select coalesce((select indrelid from pg_index where indexrelid = to_regclass(${name})), to_regclass(${name}))::regclass::text as "table"`
        const table = found?.table ?? null
        if (table === null) return false
        return (yield* sql.unsafe(`select from ${table} limit 1`)).length > 0
      })
    )
    return !filled
  })

/**
 * The pending files of the next commit: all before the first one with a step of its own, or that one if it comes first.
 * Empty if the first one runs without a transaction.
 */
const stepOf = (pending: ReadonlyArray<MigrationFile>) =>
  Effect.gen(function* () {
    const step: Array<MigrationFile> = []
    for (const file of pending) {
      const joins = file.transaction ? !file.alone : yield* hasNoRows(file)
      if (!joins) return step.length === 0 && file.transaction ? [file] : step
      step.push(file)
    }
    return step
  })

const inOneTransaction = (files: ReadonlyArray<MigrationFile>, options: Options) =>
  inTransaction(options, (holders) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pending } = yield* readPending(files, options.table)
      const step = yield* stepOf(pending)
      for (const { file, text, transaction } of step) {
        yield* Effect.logDebug("Running migration").pipe(Effect.annotateLogs("migration", file))
        const statements = transaction ? text : text.replaceAll(/\bindex\s+concurrently\b/giu, "index")
        // Text without parameters may contain several statements.
        yield* Effect.catchAll(
          sql.unsafe(statements),
          toMigrationError(file, holders, "Nothing of the files that wait was applied.")
        )
      }
      if (step.length > 0) yield* recordApplied(step, options.table)
      return namesOf(step)
    })
  )

const refusedByPooler =
  "runs outside a transaction, which a pooler before PostgreSQL does not allow: " +
  "run spoke migrate once with SPOKE_DATABASE_DIRECT_URL, the address of the server itself"

/** Runs one statement without a transaction. An invalid index that a crash has left is built again. */
const runOutsideTransaction = (statement: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const index = concurrentIndex(statement)
    if (index === null) return yield* sql.unsafe(statement)
    const [found] = yield* sql<{ readonly valid: boolean }>`
      select indisvalid as valid from pg_index where indexrelid = to_regclass(${index})`
    if (found?.valid === true) return
    if (found !== undefined) yield* sql.unsafe(`drop index concurrently ${index}`)
    yield* sql.unsafe(statement)
  })

/** Applies one file without a transaction, on its own session. */
const applyWithoutTransaction = (files: ReadonlyArray<MigrationFile>, options: Options) =>
  Effect.gen(function* () {
    const [next] = (yield* readPending(files, options.table)).pending
    if (next !== undefined && (yield* isPooled))
      return yield* stateError(`The migration ${next.file} ${refusedByPooler}.`)
    const watched = yield* Holders.watch(Duration.times(options.lockTimeout, 0.3))
    const steps = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const key = lockKey(sql, options.table)
      const [here] = yield* sql<{ readonly mine: boolean; readonly pid: number }>`
        select pg_try_advisory_lock(${key}) as mine, pg_backend_pid() as pid`
      if (here?.mine !== true) return yield* new Busy()
      yield* Effect.addFinalizer(() => Effect.ignore(sql`select pg_advisory_unlock(${key})`))
      const { pending } = yield* readPending(files, options.table)
      const [step] = pending
      if (step === undefined || step.transaction) return []
      yield* Effect.addFinalizer(() => Effect.ignore(sql`reset lock_timeout`))
      yield* sql`select set_config('lock_timeout', ${milliseconds(options.giveUpAfter)}, false)`
      yield* watched.setWaiting(here.pid)
      const progress = "Its statements up to there were applied, and the next start goes on with the others."
      yield* Effect.forEach(statementsOf(step.text), runOutsideTransaction, { discard: true }).pipe(
        Effect.catchAll(toMigrationError(step.file, watched.holders, progress)),
        // The maximum waiting time has passed.
        Effect.catchIf(
          (failed) => failed._tag === "LockUnavailable" && sqlStateOf(failed.error.cause) === "55P03",
          (failed) => Effect.fail(failed._tag === "LockUnavailable" ? failed.error : failed)
        )
      )
      yield* recordApplied([step], options.table)
      return namesOf([step])
    }).pipe(Effect.scoped)
    return yield* onOwnSession(steps)
  }).pipe(Effect.scoped)

const lockPollInterval = Duration.millis(300)
const maxRetryPause = Duration.seconds(15)

/**
 * Waits for another migrating process without a limit. Retries with increasing delays when a lock was not available.
 */
const withRetries = <A, E, R>(
  attempt: Effect.Effect<A, E | Busy | LockUnavailable, R>,
  { giveUpAfter }: Options
) => {
  const polling = Effect.retry(attempt, {
    while: (error) => error instanceof Busy,
    schedule: Schedule.spaced(lockPollInterval)
  })
  return attempt.pipe(
    Effect.catchIf(
      (error) => error instanceof Busy,
      () =>
        Effect.logInfo("Another process migrates the database: waiting for it").pipe(
          Effect.zipRight(Effect.sleep(lockPollInterval)),
          Effect.zipRight(polling)
        )
    ),
    Effect.tapError((error) =>
      error instanceof LockUnavailable
        ? Effect.logWarning("A migration waits for a lock and tries again", error.error.message)
        : Effect.void
    ),
    Effect.retry({
      while: (error) => error instanceof LockUnavailable,
      schedule: Schedule.exponential("500 millis").pipe(
        Schedule.union(Schedule.spaced(maxRetryPause)),
        Schedule.jittered,
        Schedule.upTo(giveUpAfter)
      )
    }),
    Effect.catchAll((error) => Effect.fail(error instanceof LockUnavailable ? error.error : error))
  )
}

/**
 * Brings the database up to date and returns the applied migrations. Any number of processes may call it at the same
 * time. Pending files are applied all or none, except those without a transaction, which continue where they stopped. A
 * `MigrationError` names the refused file, or who holds the lock that it needs.
 */
export const migrate = (
  directory: string,
  given: MigrateOptions = {}
): Effect.Effect<ReadonlyArray<Applied>, MigrationError | SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const options = optionsOf(given)
    const files = yield* load(directory)
    const applied: Array<Applied> = []
    let found = yield* readPending(files, options.table)
    if (!found.prepared) yield* withRetries(prepare(options), options)
    while (found.pending.length > 0) {
      const run = (yield* stepOf(found.pending)).length > 0 ? inOneTransaction : applyWithoutTransaction
      const step: Effect.Effect<
        ReadonlyArray<Applied>,
        MigrationError | SqlError | Busy | LockUnavailable,
        SqlClient.SqlClient
      > = run(files, options)
      applied.push(...(yield* withRetries(step, options)))
      found = yield* readPending(files, options.table)
    }
    return applied
  }).pipe(
    Effect.catchTag("Busy", (busy) => Effect.die(busy)),
    forEveryTenant("migration"),
    Effect.withSpan("Database.migrate")
  )

/** The migrations of `directory` that the database does not have yet. Changes nothing. */
export const pendingFiles = (directory: string, table = mainTable) =>
  Effect.gen(function* () {
    const files = yield* load(directory)
    return (yield* readPending(files, table)).pending
  }).pipe(forEveryTenant("migration"), Effect.withSpan("Database.pendingMigrations"))
