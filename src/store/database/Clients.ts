/** A `PgClient` over each engine, with our own `listen` and `notify`. */
import type * as Reactivity from "@effect/experimental/Reactivity"
import * as PgClient from "@effect/sql-pg/PgClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { PGlite } from "@electric-sql/pglite"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Pg from "pg"
import { listenEmbedded, listenNative, notifyBy } from "./Notifications.ts"

export interface ServerOptions {
  readonly url: Redacted.Redacted
  /** Bounds the pool; one more connection listens. */
  readonly maxConnections: number
}

type Client = Effect.Effect<PgClient.PgClient, SqlError, Scope.Scope | Reactivity.Reactivity>

const connectTimeout = Duration.seconds(10)
/** No statement of ours takes longer; one that does is cancelled by the server. */
const statementTimeout = Duration.seconds(60)

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
  )

/** A client of an open PGlite, which stays the caller's to close. */
export const embeddedClient = (db: PGlite): Client =>
  Effect.gen(function* () {
    // Loaded here and not above, so that a process on a server never reads the embedded engine.
    const { createPgConfig } = yield* Effect.promise(() => import("@electric-sql/pglite/node-postgres"))
    // The pool's size is 1; recycling its one connection gains nothing.
    const client = yield* PgClient.fromPool({
      acquire: poolOf({ ...createPgConfig(db), idleTimeoutMillis: 0 })
    })
    return Object.assign(client, { listen: listenEmbedded(client, db), notify: notifyBy(client) })
  })

/** A client of a PostgreSQL server that has answered once. Dies when the address cannot be read. */
export const serverClient = (options: ServerOptions): Client =>
  Effect.gen(function* () {
    const connection = {
      connectionString: Redacted.value(options.url),
      application_name: "spoke",
      keepAlive: true,
      connectionTimeoutMillis: Duration.toMillis(connectTimeout)
    }
    const client = yield* PgClient.fromPool({
      acquire: poolOf({
        ...connection,
        max: options.maxConnections,
        statement_timeout: Duration.toMillis(statementTimeout),
        idle_in_transaction_session_timeout: Duration.toMillis(statementTimeout)
      })
    })
    yield* client`select 1`
    const listen = yield* listenNative(() => new Pg.Client(connection), connectTimeout)
    return Object.assign(client, { listen, notify: notifyBy(client) })
  })
