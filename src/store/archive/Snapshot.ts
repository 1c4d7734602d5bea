/** Several connections that read one state of the database at the same time. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { useFixedFormats } from "./RowTexts.ts"

/** For a transaction that reads or writes whole tables, and waits for a disk meanwhile. */
export const withoutTimeLimits = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    select set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`
)

const useSnapshotIsolation = Effect.flatMap(
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
    const prepare = Effect.zipRight(withoutTimeLimits, useFixedFormats)
    if (streams === 1)
      return yield* sql.withTransaction(Effect.zipRight(Effect.zipRight(useSnapshotIsolation, prepare), work))
    const exported = yield* Deferred.make<string, Effect.Effect.Error<typeof useSnapshotIsolation>>()
    // Other transactions can use the snapshot only while this one is open.
    const exportSnapshot = sql.withTransaction(
      Effect.gen(function* () {
        yield* useSnapshotIsolation
        yield* withoutTimeLimits
        const [row] = yield* sql<{ readonly id: string }>`select pg_export_snapshot() as id`
        yield* Deferred.succeed(exported, row?.id ?? "")
        return yield* Effect.never
      })
    )
    const runStream = (id: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* useSnapshotIsolation
          yield* sql`set transaction snapshot ${sql.literal(`'${id}'`)}`
          yield* prepare
          yield* work
        })
      )
    const all = Effect.flatMap(Deferred.await(exported), (id) =>
      Effect.forEach(Array.from({ length: streams }), () => runStream(id), {
        concurrency: streams,
        discard: true
      })
    )
    yield* Effect.raceFirst(all, exportSnapshot)
  })
