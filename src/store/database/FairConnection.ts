/**
 * Shares the connections of a pool fairly between owners: each gets one in turn, so that an owner with a thousand
 * statements does not delay the single statement of another. A transaction holds its connection until it ends.
 */
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Pg from "pg"
import { currentOwner, withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { releasedOnFailure } from "../../concurrency/ReleasedOnFailure.ts"

/** Maximum number of statements and transactions that wait for a connection. */
const maxWaiting = 20_000

/**
 * How many times as long as a connection may take to open a statement waits for its turn: a burst of one tenant waits
 * for its own statements. If the database cannot be reached, all waiting statements fail after this time.
 */
const maxWaitInConnectTimeouts = 3

/** The error of the pool itself when no connection is available in time. */
const noConnection = () =>
  new SqlError({
    cause: new Error("timeout exceeded when trying to connect"),
    message: "There is no connection to the database."
  })

/**
 * `statements` runs each statement on any free connection of `pool`; `takeConnection` takes one for a transaction. Both
 * wait until the pool has a free connection.
 */
export const makeFairConnections = (
  pool: Pg.Pool,
  statements: Connection,
  takeConnection: Effect.Effect<Connection, SqlError, Scope.Scope>
) => {
  const connectTimeoutMillis = pool.options.connectionTimeoutMillis ?? 0
  const limiter = new FairLimiter({
    name: "database-connections",
    permits: pool.options.max,
    maxWaiting,
    maxWait:
      connectTimeoutMillis === 0
        ? Duration.infinity
        : Duration.millis(maxWaitInConnectTimeouts * connectTimeoutMillis)
  })
  const withPermit = withSharedPermit(limiter, noConnection)
  const connection: Connection = {
    execute: (text, params, transform) => withPermit(statements.execute(text, params, transform)),
    executeRaw: (text, params) => withPermit(statements.executeRaw(text, params)),
    executeStream: (text, params, transform) =>
      Stream.fromIterableEffect(withPermit(statements.execute(text, params, transform))),
    executeValues: (text, params) => withPermit(statements.executeValues(text, params)),
    executeUnprepared: (text, params, transform) =>
      withPermit(statements.executeUnprepared(text, params, transform))
  }
  const transactionConnection = releasedOnFailure(
    Effect.flatMap(FiberRef.get(currentOwner), (owner) =>
      Effect.zipRight(Effect.mapError(limiter.acquire(owner), noConnection), takeConnection)
    )
  )
  return { connection, transactionConnection } as const
}
