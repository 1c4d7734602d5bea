/** Database checks of `spoke doctor`. They create, migrate and change nothing. */
import * as fs from "node:fs"
import * as path from "node:path"
import * as HttpClient from "@effect/platform/HttpClient"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { forEveryTenant } from "../../../concurrency/TenantSession.ts"
import { VectorEncodingStore } from "../../../store/knowledge/VectorEncoding.ts"
import { VectorIndexStore } from "../../../store/knowledge/VectorIndexes.ts"
import {
  pendingFiles,
  refuseReadOnly,
  rowLevelSecurityState,
  vectorVersions
} from "../../../store/Database.ts"
import type { Settings } from "../../config/Config.ts"
import * as DataDirectory from "../../DataDirectory.ts"
import { database } from "../../Live.ts"
import * as Package from "../../Package.ts"
import { type Finding, ok, answerTimeout, problem, warning } from "./Finding.ts"

/**
 * Health of an embedded database that a running server has open, as reported by that server: no other process may open
 * it.
 */
const runningServerFinding = (settings: Settings) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const credentials = yield* DataDirectory.credentials.read(settings.dataDir)
    const url = Option.match(credentials, { onNone: () => settings.appUrl, onSome: (found) => found.url })
    const { status } = yield* client.get(`${url}/readyz`).pipe(Effect.timeout(answerTimeout))
    return status === 200
      ? ok("database", `embedded, in use by the server at ${url}, which is ready`)
      : problem("database", `embedded, in use by the server at ${url}, which is not ready (${status})`)
  }).pipe(
    Effect.orElseSucceed(() =>
      problem("database", "embedded, held by another process that does not answer. End that process first.")
    )
  )

const oldestServerVersion = 150_000

interface Server {
  readonly version: string
  readonly number: number
  readonly freeConnections: number
}

/**
 * The server's free connections, within the limits of role and database, which do not bind superusers. Other clients'
 * connections and reserved ones are subtracted.
 */
const server = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<Server>`
    with others as (
      select usename, datname from pg_stat_activity
      where backend_type = 'client backend' and application_name <> 'spoke'
    ), bound as (
      select rolconnlimit, datconnlimit from pg_roles, pg_database
      where rolname = session_user and not rolsuper and datname = current_database()
    )
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int - (select count(*) from others),
        (select nullif(rolconnlimit, -1) from bound) - (select count(*) from others where usename = session_user),
        (select nullif(datconnlimit, -1) from bound) - (select count(*) from others where datname = current_database())
      )::int as "freeConnections"`
)

const versionFinding = (settings: Settings, { number, version }: Server): Finding => {
  const name = settings.database === null ? "embedded PostgreSQL" : "PostgreSQL"
  return number < oldestServerVersion
    ? problem("database", `${name} ${version} is too old: 15 is needed`)
    : ok("database", `${name} ${version}`)
}

/** Connections of each process: its pool, and one for LISTEN. */
const poolFindings = (
  { database: options }: Settings,
  { freeConnections }: Server
): ReadonlyArray<Finding> => {
  if (options === null) return []
  const each = options.maxConnections + 1
  const processes = Math.floor(Math.max(0, freeConnections) / each)
  const text = `SPOKE_DATABASE_POOL takes ${each} connections a process, and the server has room for ${freeConnections}`
  return [
    processes === 0
      ? problem("connections", `${text}: lower it, or raise max_connections there`)
      : ok("connections", `${text}: ${processes} ${processes === 1 ? "process" : "processes"}`)
  ]
}

const migrations = Effect.map(pendingFiles(Package.migrations), (pending) =>
  pending.length === 0
    ? ok("migrations", "all are applied")
    : warning("migrations", `${pending.length} wait; the next start applies them, and so does spoke migrate`)
).pipe(Effect.catchTag("MigrationError", ({ message }) => Effect.succeed(problem("migrations", message))))

/** Seconds by which the database's clock is ahead of ours. */
const clockSkew = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const before = yield* Clock.currentTimeMillis
  const [row] = yield* sql<{ readonly now: number }>`
    select extract(epoch from clock_timestamp())::float8 as now`
  const after = yield* Clock.currentTimeMillis
  return (row?.now ?? 0) - (before + after) / 2_000
})

const maxSkewSeconds = { warning: 2, problem: 60 }

export const clockFinding = (seconds: number): Finding => {
  const skewSeconds = Math.abs(seconds)
  const text = `this machine and the database are ${skewSeconds.toFixed(1)} seconds apart`
  if (skewSeconds < maxSkewSeconds.warning) return ok("clock", text)
  const advice = `${text}: let both follow one time server (NTP)`
  return skewSeconds < maxSkewSeconds.problem ? warning("clock", advice) : problem("clock", advice)
}

/** The work that is left for workers before searches use pgvector; empty if none is. */
const vectorWork = Effect.gen(function* () {
  if ((yield* pendingFiles(path.join(Package.migrations, "pgvector"), "migrations_pgvector")).length > 0)
    return ""
  const waiting = yield* Effect.flatMap(VectorEncodingStore, ({ countWaiting }) => countWaiting)
  const unindexed = yield* Effect.flatMap(VectorIndexStore, ({ countMissing }) => countMissing)
  const parts = [
    ...(waiting === 0 ? [] : [`${waiting} vectors are still to be converted`]),
    ...(unindexed === 0 ? [] : [`${unindexed} large agents have no index yet`])
  ]
  return parts.length === 0
    ? ""
    : `; ${parts.join(", and ")}: workers do that when no process of 0.1.0 is running`
}).pipe(Effect.provide(Layer.merge(VectorEncodingStore.Default, VectorIndexStore.Default)))

const vector = (settings: Settings) =>
  Effect.gen(function* () {
    if (settings.database === null) return ok("search", "in-process: the embedded database needs no other")
    if (settings.vector === "in-process") return ok("search", "in-process: SPOKE_VECTOR says so")
    const { installed, obstacle, version } = yield* vectorVersions
    if (obstacle === null && installed !== null)
      return ok("search", `pgvector: ${installed} is there${yield* vectorWork}`)
    if (obstacle === null) return ok("search", `pgvector: ${version}, which the next start makes`)
    return settings.vector === "pgvector"
      ? problem("search", obstacle)
      : warning("search", `in-process: ${obstacle}`)
  })

/** Where the job queue is stored. */
const queuePlace = ({ database: options }: Settings): string =>
  options === null ? "in the embedded database" : "in PostgreSQL"

/** The finding on the queue if the database check has not added one. */
const queueFallback = (settings: Settings, found: ReadonlyArray<Finding>): ReadonlyArray<Finding> => {
  if (found.some(({ check }) => check === "queue")) return []
  const broken = found.some(({ check, status }) => check === "database" && status === "problem")
  return [
    broken
      ? warning("queue", `${queuePlace(settings)}, which could not be asked: see database`)
      : ok("queue", queuePlace(settings))
  ]
}

const queues = (settings: Settings) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [table] = yield* sql<{
      readonly found: boolean
    }>`select to_regclass('queue_jobs') is not null as found`
    if (table?.found !== true) return []
    const [row] = yield* sql<{ readonly waiting: number; readonly failed: number }>`
    select (count(*) filter (where state = 'waiting'))::int as waiting,
      (count(*) filter (where state = 'failed'))::int as failed from queue_jobs`
    const { failed, waiting } = row ?? { failed: 0, waiting: 0 }
    return [
      failed === 0
        ? ok("queue", `${queuePlace(settings)}: ${waiting} jobs wait, none has failed`)
        : warning(
            "queue",
            `${queuePlace(settings)}: ${waiting} jobs wait, ${failed} have failed: the operator's routes say why and retry`
          )
    ]
  })

/** Checks row level security: whether it is on, and whether it applies to the role of tenants' statements. */
const isolationFinding = (settings: Settings) =>
  Effect.gen(function* () {
    const role = settings.tenantRole
    const found = yield* rowLevelSecurityState(role ?? "")
    const closed = found.tables.length - found.open.length
    const check = "row level security"
    if (role === null && closed === 0)
      return ok(check, "off: SPOKE_TENANT_ROLE turns it on, and docs/operations.md says how")
    if (!found.isOwner && closed > 0)
      return problem(
        check,
        `${found.user} does not own the tables, and what the owner may do fails: connect as their owner`
      )
    if (role === null)
      return warning(
        check,
        `${closed} tables have policies, but SPOKE_TENANT_ROLE is not set: as their owner ${found.user} passes them by`
      )
    if (found.unbound)
      return problem(
        check,
        `${role} is a superuser, has BYPASSRLS or owns tables: no policy binds it. Take another role`
      )
    if (!found.isMember && !(found.creatable && !found.exists))
      return problem(
        check,
        `${found.user} may not become ${role}: let an administrator run CREATE ROLE ${role} NOLOGIN; GRANT ${role} TO ${found.user}`
      )
    return found.open.length === 0 && found.ungranted.length === 0
      ? ok(check, `on for ${closed} tables: tenants' statements run as ${role}`)
      : warning(
          check,
          `${found.open.length} tables have no policy yet; the next start makes them, and so does spoke migrate`
        )
  })

const findingsOf = (settings: Settings) =>
  Effect.gen(function* () {
    const [found] = yield* server
    if (found === undefined) return [problem("database", "does not say what it is")]
    yield* refuseReadOnly
    return [
      versionFinding(settings, found),
      ...poolFindings(settings, found),
      yield* migrations,
      yield* isolationFinding(settings),
      yield* vector(settings),
      clockFinding(yield* clockSkew),
      ...(yield* queues(settings))
    ]
  }).pipe(forEveryTenant("operator"), Effect.provide(database(settings)))

const isFirstStart = ({ database: options, dataDir }: Settings): boolean =>
  options === null && !fs.existsSync(path.join(dataDir, "database"))

const databaseFindings = (settings: Settings) =>
  Effect.suspend(() =>
    isFirstStart(settings)
      ? Effect.succeed([ok("database", "embedded; the first start creates it")])
      : findingsOf(settings).pipe(
          Effect.timeoutFail({
            duration: answerTimeout,
            onTimeout: () => ({ _tag: "NoAnswer", message: "The database does not answer in time." }) as const
          }),
          Effect.catchTag("DataDirectoryLocked", () =>
            Effect.map(runningServerFinding(settings), (finding) => [finding])
          ),
          Effect.catchAll(({ message }) => Effect.succeed([problem("database", message)]))
        )
  )

/** Notifications that arrive late, as behind a pooler, never arrive. */
const notificationTimeout = "7 seconds"

/** Whether a notification arrives at SPOKE_DATABASE_DIRECT_URL. The server starts without it, and works slower. */
const directFindings = (settings: Settings) =>
  settings.database === null || (settings.database.directUrl ?? null) === null
    ? Effect.succeed([])
    : Effect.gen(function* () {
        const client = yield* PgClient.PgClient
        yield* client.listen("spoke_doctor").pipe(
          // An empty text means that listening has begun.
          Stream.tap((text) => (text === "" ? client.notify("spoke_doctor", "arrived") : Effect.void)),
          Stream.filter((text) => text !== ""),
          Stream.runHead,
          Effect.timeoutFail({
            duration: notificationTimeout,
            onTimeout: () => ({
              message:
                "None arrives at SPOKE_DATABASE_DIRECT_URL. It has to name the same database as DATABASE_URL, without a pooler"
            })
          })
        )
        return [ok("notifications", "arrive at SPOKE_DATABASE_DIRECT_URL")]
      }).pipe(
        forEveryTenant("operator"),
        Effect.provide(database(settings)),
        Effect.catchAll(({ message }) => Effect.succeed([problem("notifications", message)]))
      )

/** The database and, on every engine, the queue. */
export const checkDatabase = (settings: Settings) =>
  Effect.gen(function* () {
    const findings = yield* databaseFindings(settings)
    const answers = findings.every(({ check, status }) => check !== "database" || status === "ok")
    const direct = answers ? yield* directFindings(settings) : []
    return [...findings, ...queueFallback(settings, findings), ...direct]
  })
