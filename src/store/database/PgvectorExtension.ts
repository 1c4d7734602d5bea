/** The extension pgvector and its own migrations. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Path from "node:path"
import { sqlStateOf } from "./Failure.ts"
import type { MigrationError } from "./MigrationFiles.ts"
import { migrate } from "./Migrations.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"

/** pgvector cannot be used on this database; `message` says what to do. */
export class VectorUnavailable extends Schema.TaggedError<VectorUnavailable>()("VectorUnavailable", {
  message: Schema.String
}) {}

/**
 * The oldest supported version: the first with iterative index scans, without which searches in large databases find
 * too little.
 */
const minVersion = [0, 8] as const

const isSupported = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > minVersion[0] || (major === minVersion[0] && minor >= minVersion[1])
}

interface ExtensionState {
  readonly offered: string | null
  readonly installed: string | null
  /** Whether this user may create the extension. */
  readonly creatable: boolean
  /** The statement that makes the extension visible to this user; null if it is visible, or not installed. */
  readonly unseen: string | null
}

const extensionState = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<ExtensionState>`
    select (select default_version from pg_available_extensions where name = 'vector') as offered,
      (select extversion from pg_extension where extname = 'vector') as installed,
      (select rolsuper from pg_roles where rolname = current_user)
        or (has_database_privilege(current_database(), 'CREATE')
          and exists (select 1 from pg_available_extension_versions where name = 'vector' and trusted)) as creatable,
      (select format('GRANT USAGE ON SCHEMA %1$I TO %2$I; ALTER ROLE %2$I SET search_path = %3$s, %1$I',
          n.nspname, current_user, current_setting('search_path'))
        from pg_extension e
        join pg_namespace n on n.oid = e.extnamespace
        join pg_type t on t.typnamespace = n.oid and t.typname = 'vector'
        where e.extname = 'vector' and not pg_type_is_visible(t.oid)) as unseen`
  return row ?? { offered: null, installed: null, creatable: false, unseen: null }
})

const notCreatable =
  "pgvector is installed, but this user may not create the extension: let a superuser run CREATE EXTENSION vector in this database"

/** Why pgvector cannot be used, and what to do; null if it can. */
const unavailableReason = ({ installed, offered, unseen }: ExtensionState): string | null => {
  const version = installed ?? offered
  if (version === null)
    return "the server has no pgvector: install its package there (postgresql-NN-pgvector)"
  if (!isSupported(version))
    return `pgvector ${version} is too old, 0.8 is needed: update its package, then let a superuser run ALTER EXTENSION vector UPDATE`
  if (unseen !== null)
    return `pgvector is in a schema where this user does not look: let a superuser run ${unseen}`
  return null
}

/** The versions that {@link prepareVector} would find. Changes nothing. */
export const vectorVersions = Effect.map(forEveryTenant("migration")(extensionState), (found) => ({
  installed: found.installed,
  version: found.installed ?? found.offered,
  obstacle: unavailableReason(found) ?? (found.installed === null && !found.creatable ? notCreatable : null)
}))

/**
 * Creates the extension if it is missing and applies `<migrations>/pgvector`, which has its own migration table.
 * Returns the extension's version. Any number of processes may call it at the same time.
 */
export const prepareVector = (
  migrations: string
): Effect.Effect<string, VectorUnavailable | MigrationError | SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const found = yield* extensionState
    const problem = unavailableReason(found)
    if (problem !== null) return yield* new VectorUnavailable({ message: `${problem}.` })
    if (found.installed === null) {
      // Always tried, because hosted databases let users create it without showing that in the catalogue.
      yield* sql`create extension if not exists vector`.pipe(
        Effect.catchIf(
          (error) => sqlStateOf(error) === "42501",
          () => new VectorUnavailable({ message: `${notCreatable}.` })
        ),
        // Of two processes that create it at the same time, one fails and finds it on retry.
        Effect.retry({
          times: 3,
          schedule: Schedule.spaced("200 millis"),
          while: (error) => error._tag === "SqlError"
        })
      )
    }
    yield* migrate(Path.join(migrations, "pgvector"), { table: "migrations_pgvector" })
    return found.installed ?? found.offered ?? ""
  }).pipe(forEveryTenant("migration"), Effect.withSpan("Database.prepareVector"))
