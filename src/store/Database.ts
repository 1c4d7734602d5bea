/**
 * The database, one `PgClient` for both engines. The embedded engine is node-postgres over PGlite, on a thread of this
 * process, so types, cursors, savepoints and error codes are those of a PostgreSQL server.
 *
 * The embedded engine has **one** connection. A transaction blocks all other queries, so it should contain only SQL. A
 * query that runs outside its transaction's context waits forever.
 *
 * `listen` and `notify` are our own (database/Notifications.ts). A stream of `listen` begins with one empty string;
 * from then on nothing is missed.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { codeOf } from "../domain/ThrownErrors.ts"
import { embeddedClient, refuseReadOnly, serverClient, type ServerOptions } from "./database/Clients.ts"
import {
  DatabaseUnavailable,
  type EngineOptions,
  openDirectory,
  openMemory,
  OnEngineFailure
} from "./database/Embedded.ts"
import type { Engine } from "./database/Engine.ts"
import {
  DataDirectoryLocked,
  DataDirectoryUnusable,
  lockDirectory,
  refuseIfInUse
} from "./database/DataDirectoryLock.ts"
import { sqlStateOf } from "./database/Failure.ts"
import { migrate, pendingFiles } from "./database/Migrations.ts"
import { plan as planMigrations, type PlannedFile, type PlannedLock } from "./database/MigrationPlan.ts"
import * as EmbeddedMaintenance from "./database/EmbeddedMaintenance.ts"
import { addWeeks } from "./Partitions.ts"
import { isolateTenants, IsolationUnavailable, rowLevelSecurityState } from "./RowLevelSecurity.ts"
import { prepareVector, VectorUnavailable, vectorVersions } from "./database/PgvectorExtension.ts"

export {
  addWeeks,
  DatabaseUnavailable,
  DataDirectoryLocked,
  DataDirectoryUnusable,
  isolateTenants,
  rowLevelSecurityState,
  IsolationUnavailable,
  migrate,
  pendingFiles,
  type PlannedFile,
  type PlannedLock,
  planMigrations,
  prepareVector,
  refuseReadOnly,
  sqlStateOf,
  VectorUnavailable,
  vectorVersions,
  OnEngineFailure
}

/** The services that every engine provides. */
export type Database = SqlClient.SqlClient | PgClient.PgClient

interface IsolationOptions {
  /** As in {@link ServerOptions}. */
  readonly tenantRole?: string | null
}

const layerOf = <E>(client: Effect.Effect<PgClient.PgClient, E, Scope.Scope | Reactivity.Reactivity>) =>
  client.pipe(
    Effect.map((client) =>
      Context.make(PgClient.PgClient, client).pipe(Context.add(SqlClient.SqlClient, client))
    ),
    Layer.scopedContext,
    Layer.provide(Reactivity.layer)
  )

const clientOf =
  (tenantRole: string | null = null) =>
  <E>(engine: Effect.Effect<Engine, E, Scope.Scope>) =>
    Effect.flatMap(engine, (engine) => Effect.orDie(embeddedClient(engine, tenantRole)))

/**
 * PostgreSQL in this process, stored in `<dataDir>/database` (directories 0700, files 0600). `dataDir` is locked
 * against every other process. A new database is unpacked from `seed` when that file exists. Migrations are not
 * applied.
 */
export const layerEmbedded = (
  options: EngineOptions & IsolationOptions & { readonly dataDir: string }
): Layer.Layer<Database, DataDirectoryLocked | DataDirectoryUnusable | DatabaseUnavailable> =>
  Effect.flatMap(OnEngineFailure, (onFailure) => lockDirectory(options.dataDir, onFailure)).pipe(
    Effect.zipRight(refuseIfInUse(options.dataDir)),
    Effect.zipRight(openDirectory(options.dataDir, options)),
    clientOf(options.tenantRole),
    Effect.tap(EmbeddedMaintenance.maintain),
    layerOf
  )

/**
 * PostgreSQL in this process, removed with its scope, for tests. Migrations are not applied, unless `seed` contains
 * them.
 */
export const layerMemory = (
  options: EngineOptions & IsolationOptions = {}
): Layer.Layer<Database, DatabaseUnavailable> => layerOf(clientOf(options.tenantRole)(openMemory(options)))

/** Codes with which this side refuses the server's certificate. */
const isUntrusted = (code: string) => /^(?:CERT_|DEPTH_ZERO_|ERR_TLS_|SELF_SIGNED_|UNABLE_TO_)/u.test(code)

const certificateAdvice = (code: string): string => {
  if (code === "CERT_HAS_EXPIRED") return "It has expired."
  return code === "ERR_TLS_CERT_ALTNAME_INVALID"
    ? "It is for another name: let DATABASE_URL name the server as its certificate does."
    : "Name its authority's certificate in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/to/authority.pem."
}

/** The error does not contain the address or the system's message, because it may contain the password. */
const unavailable = ({ cause, message }: SqlError) => {
  const code = codeOf(cause)
  if (isUntrusted(code))
    return new DatabaseUnavailable({
      message: `The certificate of the PostgreSQL server is not accepted (${code}). ${certificateAdvice(code)}`
    })
  // Codes of the operating system begin with letters; codes of a PostgreSQL server are SQLSTATEs with digits.
  return new DatabaseUnavailable({
    message: /^E[A-Z_]+$/u.test(code)
      ? `The PostgreSQL server cannot be reached (${code}).`
      : `The PostgreSQL server refuses the connection: ${message}.`
  })
}

/** The driver throws when it cannot read the address, or a file that it names. */
const unreadable = (defect: unknown) => {
  const code = codeOf(defect)
  return new DatabaseUnavailable({
    message: /^E(?:ACCES|ISDIR|NOENT|PERM)$/u.test(code)
      ? `A file that DATABASE_URL names (sslrootcert, sslcert or sslkey) cannot be read (${code}).`
      : "The address of the PostgreSQL server cannot be read."
  })
}

/**
 * A PostgreSQL server, version 15 or later. Fails within ten seconds if it does not answer. Migrations are not applied.
 */
export const layerPostgres = (options: ServerOptions): Layer.Layer<Database, DatabaseUnavailable> =>
  serverClient(options).pipe(
    Effect.catchTag("SqlError", (error) => unavailable(error)),
    Effect.catchAllDefect((defect) => unreadable(defect)),
    layerOf
  )
