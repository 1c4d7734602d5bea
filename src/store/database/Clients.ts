/** A `PgClient` over each engine, with our own `listen` and `notify`. */
import type * as Reactivity from "@effect/experimental/Reactivity"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Pg from "pg"
import { codeOf, isError } from "../../domain/ThrownErrors.ts"
import { DatabaseUnavailable } from "./Embedded.ts"
import type { Engine } from "./Engine.ts"
import { EngineSocket } from "./EngineSocket.ts"
import { listenEmbedded, listenNative, notifyBy } from "./Notifications.ts"
import * as PoolMetrics from "./PoolMetrics.ts"
import { PreparedStatements } from "./PreparedStatements.ts"
import { clientOfPool } from "./PoolClient.ts"
import { sessionName, sessionText } from "./TenantQuery.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"

export interface ServerOptions {
  readonly url: Redacted.Redacted
  /** Maximum number of connections of the pool. One more listens. */
  readonly maxConnections: number
  /** Address of the listening connection if `url` leads to a pooler without LISTEN; `url` by default. */
  readonly directUrl?: Redacted.Redacted | null
  /** The role that tenants' statements run as, for row level security; null, the default: the role of `url`. */
  readonly tenantRole?: string | null
}

type Client<E = never> = Effect.Effect<PgClient.PgClient, E | SqlError, Scope.Scope | Reactivity.Reactivity>

const connectTimeout = Duration.seconds(10)
/** No statement of ours takes longer; one that does is cancelled by the server. */
const statementTimeout = Duration.seconds(60)
/** In the form of `server_version_num`. */
const minServerVersion = 150_000

/**
 * Compiling a statement takes a tenth of a second or more, and the planner chooses it even where it saves nothing.
 * Behind a pooler, the setting may remain on a connection that others use. It changes no result.
 */
const disableJit = (client: Pg.ClientBase, done: (error?: Error) => void) =>
  client.query("set jit = off", (error: Error | undefined) => done(error))

/** Prepares the statement that precedes every tenant's statement, so that the connection parses it once. */
const prepareSession = (client: Pg.ClientBase, done: (error?: Error) => void) =>
  client.query({ name: sessionName, text: sessionText, values: ["none", ""] }, (error: Error | undefined) =>
    done(error)
  )

const poolOf = (config: Pg.PoolConfig) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const pool = new Pg.Pool(config)
      // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
      pool.on("error", () => {})
      return pool
    }),
    (pool) =>
      Effect.ignore(
        Effect.timeout(
          Effect.promise(() => pool.end()),
          "5 seconds"
        )
      )
  ).pipe(Effect.tap(PoolMetrics.watch))

/** A client of an open engine. The caller closes the engine. */
export const embeddedClient = (engine: Engine, tenantRole: string | null = null): Client =>
  Effect.gen(function* () {
    const pool = yield* poolOf({
      stream: () => new EngineSocket(engine),
      user: "postgres",
      database: "postgres",
      ssl: false,
      // The engine has one session; recycling its one connection gains nothing.
      max: 1,
      idleTimeoutMillis: 0,
      ...(tenantRole === null ? {} : { verify: prepareSession })
    })
    const client = yield* clientOfPool(pool, new PreparedStatements(true), tenantRole)
    return Object.assign(client, { listen: listenEmbedded(client, pool), notify: notifyBy(client) })
  })

/** Without time-outs from this client the database must set its own. Warns when it does not. */
const warnWithoutTimeouts = (client: PgClient.PgClient) =>
  client<{ readonly unlimited: boolean }>`
    select 0 in (
      select setting::int from pg_settings
      where name in ('statement_timeout', 'idle_in_transaction_session_timeout')
    ) as unlimited`.pipe(
    Effect.flatMap(([row]) =>
      row?.unlimited === true
        ? Effect.logWarning(
            "The pooler before PostgreSQL takes no time limits from its clients: " +
              "set statement_timeout and idle_in_transaction_session_timeout for the role"
          )
        : Effect.void
    )
  )

/** A pooler in transaction mode refuses the settings of a new connection, as a protocol violation. */
const refusesSettings = (error: DatabaseUnavailable | SqlError) =>
  error._tag === "SqlError" &&
  isError(error.cause) &&
  codeOf(error.cause) === "08P01" &&
  /startup parameter/u.test(error.cause.message)

/** Fails if the version of the server is too old for the migrations. */
const refuseOldServer = (client: PgClient.PgClient) =>
  Effect.gen(function* () {
    const [server] = yield* client<{ readonly number: number; readonly version: string }>`
      select current_setting('server_version_num')::int as number, current_setting('server_version') as version`
    if (server === undefined || server.number >= minServerVersion) return
    return yield* new DatabaseUnavailable({
      message: `PostgreSQL ${server.version} is too old: 15 is needed. Update the server, or let DATABASE_URL name another.`
    })
  })

/** Fails if nothing can be written: on a standby, or if the role's transactions are read-only. */
export const refuseReadOnly = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ readonly standby: boolean; readonly writable: boolean }>`
    select pg_is_in_recovery() as standby, current_setting('transaction_read_only') = 'off' as writable`
  if (found === undefined || found.writable) return
  return yield* new DatabaseUnavailable({
    message: found.standby
      ? "The PostgreSQL server is a standby, which takes no writes: let DATABASE_URL name the primary."
      : "The PostgreSQL server takes no writes: default_transaction_read_only is on for this role or database. Set it to off."
  })
}).pipe(forEveryTenant("migration"))

/**
 * The address with its mode of TLS as the driver takes it: it checks the certificate in these modes, too, and prints
 * that a later version will not.
 */
const withExplicitTls = (address: string) =>
  /[?&]uselibpqcompat=true(?:&|$)/u.test(address)
    ? address
    : address.replace(/(?<=[?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/u, "verify-full")

/** A client of a PostgreSQL server that has answered once. Dies when the address cannot be read. */
export const serverClient = (options: ServerOptions): Client<DatabaseUnavailable> =>
  Effect.gen(function* () {
    const connection = {
      connectionString: withExplicitTls(Redacted.value(options.url)),
      application_name: "spoke",
      keepAlive: true,
      connectionTimeoutMillis: Duration.toMillis(connectTimeout)
    }
    const tenantRole = options.tenantRole ?? null
    const prepareConnection = (client: Pg.ClientBase, done: (error?: Error) => void) =>
      disableJit(client, (error) =>
        error === undefined || error === null ? prepareSession(client, done) : done(error)
      )
    const open = (limits: Pg.PoolConfig, pooled: boolean) =>
      poolOf({
        ...connection,
        ...limits,
        max: options.maxConnections,
        verify: tenantRole === null || pooled ? disableJit : prepareConnection
      }).pipe(
        // A pooler gives each statement another connection.
        Effect.flatMap((pool) => clientOfPool(pool, new PreparedStatements(!pooled), tenantRole)),
        Effect.tap((made) => forEveryTenant("migration")(refuseOldServer(made)))
      )
    const limits = {
      statement_timeout: Duration.toMillis(statementTimeout),
      idle_in_transaction_session_timeout: Duration.toMillis(statementTimeout)
    }
    const directUrl = options.directUrl ?? null
    const client = yield* Effect.catchIf(open(limits, directUrl !== null), refusesSettings, () =>
      Effect.tap(open({}, true), (made) => forEveryTenant("migration")(warnWithoutTimeouts(made)))
    )
    const direct = withExplicitTls(Redacted.value(directUrl ?? options.url))
    const listen = yield* listenNative({
      variable: directUrl === null ? "DATABASE_URL" : "SPOKE_DATABASE_DIRECT_URL",
      makeConnection: () => new Pg.Client({ ...connection, connectionString: direct }),
      connectTimeout,
      notify: notifyBy(client)
    })
    return Object.assign(client, { listen, notify: notifyBy(client) })
  })
