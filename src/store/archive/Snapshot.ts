/** Several connections that read one state of the database at the same time. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { pinned } from "./RowTexts.ts"

/** For a transaction that reads or writes whole tables, and waits for a disk meanwhile. */
export const withoutTimeLimits = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    select set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`
)

const consistent = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`set transaction isolation level repeatable read, read only`
)

/**
 * Runs `work` in `streams` transactions at the same time, all on the same snapshot. With one stream no other connection
 * is needed. The embedded database has one connection.
 */
export const onSnapshot = <E, R>(streams: number, work: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const prepared = Effect.zipRight(withoutTimeLimits, pinned)
    if (streams === 1)
      return yield* sql.withTransaction(Effect.zipRight(Effect.zipRight(consistent, prepared), work))
    const exported = yield* Deferred.make<string, Effect.Effect.Error<typeof consistent>>()
    // The snapshot can be taken by others as long as this transaction is open.
    const hold = sql.withTransaction(
      Effect.gen(function* () {
        yield* consistent
        yield* withoutTimeLimits
        const [row] = yield* sql<{ readonly id: string }>`select pg_export_snapshot() as id`
        yield* Deferred.succeed(exported, row?.id ?? "")
        return yield* Effect.never
      })
    )
    const stream = (id: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* consistent
          yield* sql`set transaction snapshot ${sql.literal(`'${id}'`)}`
          yield* prepared
          yield* work
        })
      )
    const all = Effect.flatMap(Deferred.await(exported), (id) =>
      Effect.forEach(Array.from({ length: streams }), () => stream(id), {
        concurrency: streams,
        discard: true
      })
    )
    yield* Effect.raceFirst(all, hold)
  })
