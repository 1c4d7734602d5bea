/** A session for statements that take minutes and allow no transaction around them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** Whether there is a pooler. It may use another session for each statement, and ignores the client's settings. */
export const isPooled = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<{ readonly pooled: boolean }>`
    select source <> 'client' and version() not like '%emscripten%' as pooled
    from pg_settings where name = 'statement_timeout'`
  return found?.pooled === true
})

/** Runs the effect's statements on one session, without a time-out for them. Not for poolers (see {@link isPooled}). */
export const onOwnSession = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const client = yield* SqlClient.SqlClient
    const session = yield* client.reserve
    const whole = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* Effect.addFinalizer(() => Effect.ignore(sql`reset statement_timeout`))
      yield* sql`select set_config('statement_timeout', '0', false)`
      return yield* effect
    }).pipe(Effect.scoped)
    return yield* Effect.provideService(whole, SqlClient.TransactionConnection, [session, 0] as const)
  }).pipe(Effect.scoped)
