/** The extension pgvector and the migration of its own that goes with it. */
import type * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Path from "node:path"
import { codeOf } from "../../domain/Thrown.ts"
import { migrate } from "./Migrations.ts"

/** pgvector cannot be used on this database; `message` says what to do about it. */
export class VectorUnavailable extends Schema.TaggedError<VectorUnavailable>()("VectorUnavailable", {
  message: Schema.String
}) {}

/** Searches that go on past the first rows of an index, without which large databases find too little (G23). */
const oldest = [0, 8] as const

const recent = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
}

const versions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly offered: string | null; readonly installed: string | null }>`
    select (select default_version from pg_available_extensions where name = 'vector') as offered,
      (select extversion from pg_extension where extname = 'vector') as installed`
  return { offered: row?.offered ?? null, installed: row?.installed ?? null }
})

/** What {@link prepareVector} would find: `creatable` when this user may make the extension. Nothing is changed. */
export const vectorVersions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* versions
  const [row] = yield* sql<{ readonly creatable: boolean }>`
    select (select rolsuper from pg_roles where rolname = current_user)
      or (has_database_privilege(current_database(), 'CREATE')
        and exists (select 1 from pg_available_extension_versions where name = 'vector' and trusted)) as creatable`
  return {
    ...found,
    sufficient: recent(found.installed ?? found.offered ?? "0"),
    creatable: row?.creatable === true
  }
})

/**
 * Makes the extension when it is missing and applies `<migrations>/pgvector`, which has a table of its own. Answers the
 * extension's version. Any number of processes may do it at the same time.
 */
export const prepareVector = (
  migrations: string
): Effect.Effect<string, VectorUnavailable | Migrator.MigrationError | SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { installed, offered } = yield* versions
    const version = installed ?? offered
    if (version === null) {
      return yield* new VectorUnavailable({
        message: "The PostgreSQL server has no pgvector: install its package (postgresql-NN-pgvector) there."
      })
    }
    if (!recent(version)) {
      return yield* new VectorUnavailable({
        message: `pgvector ${version} is too old, 0.8 is needed: update its package, then ALTER EXTENSION vector UPDATE.`
      })
    }
    yield* sql`create extension if not exists vector`.pipe(
      Effect.catchIf(
        (error) => codeOf(error) === "42501",
        () =>
          new VectorUnavailable({
            message:
              "pgvector is there, but this user may not create it: let a superuser run CREATE EXTENSION vector."
          })
      ),
      // Of two processes that create it at the same time, one fails and finds it there.
      Effect.retry({
        times: 3,
        schedule: Schedule.spaced("200 millis"),
        while: (error) => error._tag === "SqlError"
      })
    )
    yield* migrate(Path.join(migrations, "pgvector"), "migrations_pgvector")
    return version
  }).pipe(Effect.withSpan("Database.prepareVector"))
