/**
 * The statements of a pool, shared fairly: owners wait for a connection in turns, so that one with a thousand statements does
 * not keep another one's single statement waiting. A transaction holds its connection until it ends.
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

/** Statements and transactions that wait for a connection. */
const maxWaiting = 20_000

/** The error of the pool itself when no connection is available in time. */
const noConnection = () =>
  new SqlError({
    cause: new Error("timeout exceeded when trying to connect"),
    message: "There is no connection to the database."
  })

/** `statements` go to any free connection of `pool`, `hold` takes one; both within what the pool has. */
export const makeFair = (
  pool: Pg.Pool,
  statements: Connection,
  hold: Effect.Effect<Connection, SqlError, Scope.Scope>
) => {
  const wait = pool.options.connectionTimeoutMillis ?? 0
  const limiter = new FairLimiter({
    name: "database-connections",
    permits: pool.options.max,
    maxWaiting,
    maxWait: wait === 0 ? Duration.infinity : Duration.millis(wait)
  })
  const shared = withSharedPermit(limiter, noConnection)
  const connection: Connection = {
    execute: (text, params, transform) => shared(statements.execute(text, params, transform)),
    executeRaw: (text, params) => shared(statements.executeRaw(text, params)),
    executeStream: (text, params, transform) =>
      Stream.fromIterableEffect(shared(statements.execute(text, params, transform))),
    executeValues: (text, params) => shared(statements.executeValues(text, params)),
    executeUnprepared: (text, params, transform) =>
      shared(statements.executeUnprepared(text, params, transform))
  }
  const held = releasedOnFailure(
    Effect.flatMap(FiberRef.get(currentOwner), (owner) =>
      Effect.zipRight(Effect.mapError(limiter.acquire(owner), noConnection), hold)
    )
  )
  return { connection, held } as const
}
