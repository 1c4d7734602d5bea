/** Connections of a pool: an acquisition that fails or waits too long keeps none. */
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Pg from "pg"
import { makeFairConnections } from "../../../src/store/database/FairConnection.ts"
import { listenNative } from "../../../src/store/database/Notifications.ts"

const none = Effect.succeed([])
const statements: Connection = {
  execute: () => none,
  executeRaw: () => none,
  executeStream: () => Stream.empty,
  executeValues: () => none,
  executeUnprepared: () => none
}

/** Acquires a connection like a transaction: nobody closes the scope when that fails. */
const begin = (held: Effect.Effect<Connection, SqlError, Scope.Scope>) =>
  Effect.uninterruptible(Effect.flatMap(Scope.make(), (scope) => Effect.as(Scope.extend(held, scope), scope)))

const pool = new Pg.Pool({ max: 2, connectionTimeoutMillis: 200 })
const select = ({ connection }: ReturnType<typeof makeFairConnections>) =>
  connection.execute("select 1", [], undefined)

it.live("Transactions that get no connection release their place in the pool", () =>
  Effect.gen(function* () {
    let isDown = true
    const refused = new SqlError({ cause: new Error("refused"), message: "refused" })
    const fair = makeFairConnections(
      pool,
      statements,
      Effect.suspend(() => (isDown ? Effect.fail(refused) : Effect.succeed(statements)))
    )
    for (let tries = 0; tries < 5; tries++)
      expect(Exit.isFailure(yield* Effect.exit(begin(fair.transactionConnection)))).toBe(true)
    isDown = false
    expect(yield* select(fair)).toEqual([])
    yield* Scope.close(yield* begin(fair.transactionConnection), Exit.void)
  })
)

it.live("Transactions that wait too long fail in time, and release their place in the pool", () =>
  Effect.gen(function* () {
    const fair = makeFairConnections(pool, statements, Effect.succeed(statements))
    const open = [yield* begin(fair.transactionConnection), yield* begin(fair.transactionConnection)]
    const late = yield* Effect.all(
      Array.from({ length: 5 }, () => Effect.exit(begin(fair.transactionConnection))),
      { concurrency: "unbounded" }
    ).pipe(Effect.timeout("2 seconds"))
    expect(late.every(Exit.isFailure)).toBe(true)
    for (const scope of open) yield* Scope.close(scope, Exit.void)
    expect(yield* Effect.all([select(fair), select(fair)], { concurrency: 2 })).toEqual([[], []])
    yield* Effect.forEach(
      [yield* begin(fair.transactionConnection), yield* begin(fair.transactionConnection)],
      (scope) => Scope.close(scope, Exit.void)
    )
  })
)

it.live("Statements wait longer for others than a connection may take to open", () =>
  Effect.gen(function* () {
    const fair = makeFairConnections(pool, statements, Effect.succeed(statements))
    const open = [yield* begin(fair.transactionConnection), yield* begin(fair.transactionConnection)]
    const waiting = yield* Effect.fork(select(fair))
    yield* Effect.sleep("300 millis")
    for (const scope of open) yield* Scope.close(scope, Exit.void)
    expect(yield* Fiber.join(waiting)).toEqual([])
  })
)

it.live("A connection on which LISTEN fails is closed", () =>
  Effect.gen(function* () {
    let ended = 0
    const makeConnection = () =>
      Object.assign(new Pg.Client(), {
        connect: () => Promise.resolve(),
        query: () => Promise.reject(new Error("cannot execute LISTEN during recovery")),
        end: () => Promise.resolve(void (ended += 1))
      })
    const listen = yield* listenNative({
      variable: "DATABASE_URL",
      connectTimeout: "1 second",
      makeConnection,
      notify: () => Effect.void
    })
    for (let tries = 1; tries <= 3; tries++) {
      expect(Exit.isFailure(yield* Effect.exit(Stream.runDrain(listen("news"))))).toBe(true)
      expect(ended).toBe(tries)
    }
  }).pipe(Effect.scoped)
)
