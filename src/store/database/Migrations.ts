/** Applies `migrations/NNNN_name.sql`, in order, in one transaction, on every engine. */
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"

const pattern = /^(\d{4})_(\w+)\.sql$/

const badState = (message: string) => new Migrator.MigrationError({ reason: "bad-state", message })

/** The migrator keeps to itself why a migration failed. */
const withReason = (error: Migrator.MigrationError) =>
  Predicate.isTagged(error.cause, "SqlError") && Predicate.hasProperty(error.cause, "message")
    ? new Migrator.MigrationError({
        cause: error.cause,
        reason: error.reason,
        message: `${error.message}: ${String(error.cause.message)}`
      })
    : error

/** The files of a directory as migrations; the numbers must be 1, 2, 3 … with none missing and none twice. */
const load = (directory: string): Migrator.Loader =>
  Effect.gen(function* () {
    const names = yield* Effect.tryPromise({
      try: () => Fs.readdir(directory),
      catch: () => badState(`The migrations directory ${directory} cannot be read.`)
    })
    const files = names.filter((name) => name.endsWith(".sql")).sort()
    return yield* Effect.forEach(files, (file, index) => {
      const [, number, name] = pattern.exec(file) ?? []
      if (number === undefined || name === undefined) {
        return badState(`${file} is not named like 0001_name.sql.`)
      }
      if (Number(number) !== index + 1) {
        return badState(
          `Migration ${file} stands where number ${index + 1} is due: a number is missing or used twice.`
        )
      }
      const migration: Migrator.ResolvedMigration = [index + 1, name, read(Path.join(directory, file))]
      return Effect.succeed(migration)
    })
  })

/** An index of a large table takes longer than any statement of a request may. */
const unlimited = "set local statement_timeout = 0;\n"

/** Resolves to the effect that runs the file: text without parameters may hold many statements. */
const read = (path: string) =>
  Effect.map(
    Effect.promise(() => Fs.readFile(path, "utf8")),
    (text) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(`${unlimited}${text}`))
  )

/** Every applied migration must be one of ours: else the database belongs to another version of the program. */
const refuseStrangers = (known: ReadonlyArray<Migrator.ResolvedMigration>, table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const applied = yield* sql<{ migration_id: number; name: string }>`
      select migration_id, name from ${sql(table)} order by migration_id`
    for (const { migration_id: id, name } of applied) {
      const ours = known[id - 1]
      if (ours === undefined) {
        return yield* badState(`The database has migration ${id}_${name}, which this version does not know.`)
      }
      if (ours[1] !== name) {
        return yield* badState(`Migration ${id} of the database is ${name}, of this version ${ours[1]}.`)
      }
    }
  })

const pendingOf = (loaded: ReadonlyArray<Migrator.ResolvedMigration>, table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const names = loaded.map(([id, name]) => [id, name] as const)
    const [there] = yield* sql<{ readonly found: boolean }>`select to_regclass(${table}) is not null as found`
    if (there?.found !== true) return names
    yield* refuseStrangers(loaded, table)
    const applied = yield* sql<{ readonly migration_id: number }>`select migration_id from ${sql(table)}`
    const known = new Set(applied.map(({ migration_id: id }) => id))
    return names.filter(([id]) => !known.has(id))
  })

/**
 * Brings the database up to date and answers what was applied. Two processes may start on an empty database: the table
 * of migrations is made outside the lock, so the slower one fails and tries again. All pending migrations commit
 * together or not at all; one that fails is a `MigrationError`. What has been applied stands in `table`.
 */
export const migrate = (
  directory: string,
  table = "migrations"
): Effect.Effect<
  ReadonlyArray<readonly [id: number, name: string]>,
  Migrator.MigrationError | SqlError,
  SqlClient.SqlClient
> =>
  Effect.gen(function* () {
    const loaded = yield* load(directory)
    // Then nothing is locked or made: a role that may not change tables can start on what their owner has migrated.
    if ((yield* pendingOf(loaded, table)).length === 0) return []
    const applied = yield* Migrator.make({})({ loader: Effect.succeed(loaded), table }).pipe(
      // The migrator dies of a failing migration; it is the caller who knows what to say.
      Effect.catchAllCause((cause) =>
        Option.match(
          Option.filter(Cause.dieOption(cause), (defect) => defect instanceof Migrator.MigrationError),
          { onNone: () => Effect.failCause(cause), onSome: (error) => Effect.fail(withReason(error)) }
        )
      ),
      Effect.retry({
        times: 3,
        schedule: Schedule.jittered(Schedule.spaced("200 millis")),
        while: (error) => error._tag === "SqlError"
      })
    )
    yield* refuseStrangers(loaded, table)
    return applied
  }).pipe(Effect.withSpan("Database.migrate"))

/** The migrations of `directory` that the database does not have yet; nothing is changed. */
export const pendingMigrations = (
  directory: string,
  table = "migrations"
): Effect.Effect<
  ReadonlyArray<readonly [id: number, name: string]>,
  Migrator.MigrationError | SqlError,
  SqlClient.SqlClient
> =>
  Effect.flatMap(load(directory), (loaded) => pendingOf(loaded, table)).pipe(
    Effect.withSpan("Database.pendingMigrations")
  )
