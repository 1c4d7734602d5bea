/** Two transactions that lock the same two rows in different orders. Needs a database with several connections. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs `work` while another transaction locks `first`. Once `work` waits in a statement that contains `waiting`, the
 * other one locks `second`, which `work` has locked. Only `work` detects the deadlock.
 */
export const crossing = <A, E, R>(
  {
    first,
    second,
    waiting
  }: { readonly first: Fragment; readonly second: Fragment; readonly waiting: string },
  work: Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [locked, isWaiting] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const other = yield* Effect.gen(function* () {
      yield* sql`set local deadlock_timeout = '1min'`
      yield* sql`${first}`
      yield* Deferred.succeed(locked, undefined)
      yield* Deferred.await(isWaiting)
      yield* sql`${second}`
    }).pipe(sql.withTransaction, Effect.fork)
    yield* Deferred.await(locked)
    const worker = yield* Effect.fork(work)
    yield* sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and strpos(query, ${waiting}) > 0`.pipe(
      Effect.repeat({ until: (rows) => rows.length > 0 }),
      Effect.timeout("20 seconds")
    )
    yield* Deferred.succeed(isWaiting, undefined)
    yield* Fiber.join(other)
    return yield* Fiber.join(worker)
  })
