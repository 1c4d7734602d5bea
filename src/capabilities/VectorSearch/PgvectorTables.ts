/**
 * The table of a profile's vectors. It is created if missing, then filled from `chunk_embeddings` in the background. A
 * trigger adds new vectors in the transaction that stores them, in any process.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import type { Profile } from "./PgvectorQuery.ts"

/** Number of vectors that are copied in one transaction: about half a second. */
const batch = 250

/** Copies one batch; true when nothing is left. */
const fillOnce = (sql: SqlClient.SqlClient, profile: string) =>
  Effect.gen(function* () {
    yield* sql`/* every tenant: vectors */ select spoke_fill_vectors(${profile}, ${batch}::int)`
    const [row] = yield* sql<{ readonly filled: boolean }>`
      select filled from vector_profiles where profile = ${profile}`
    return row?.filled ?? false
  })

/**
 * Returns the profile's table, and whether it contains all vectors already. Continues where another process, or an
 * earlier start, stopped. A failing batch is retried; searches do not use the table meanwhile.
 */
export const makeTable = (sql: SqlClient.SqlClient, profile: string, dimensions: number) =>
  Effect.gen(function* () {
    const made = sql<{ readonly name: string }>`/* every tenant: vectors */
      select spoke_vector_table(${profile}, ${dimensions}::int) as name`.pipe(
      sql.withTransaction,
      // Retries deadlocks between two starting processes, or with a writer that locks the tables in the other order.
      Effect.retry({ times: 5, schedule: Schedule.jittered(Schedule.spaced("300 millis")) }),
      Effect.orDie
    )
    const [row] = yield* made
    const table: Profile = { table: row?.name ?? "", dimensions }
    const filled = yield* Ref.make(false)
    const fill = fillOnce(sql, profile).pipe(
      Effect.tap((done) => Ref.set(filled, done)),
      Effect.tapErrorCause((cause) => Effect.logWarning("Vectors could not be copied; retrying", cause)),
      Effect.orElseSucceed(() => false)
    )
    if (yield* fill) return { table, filled: Ref.get(filled) }
    yield* Effect.logInfo(
      "Vectors are being copied into the tables of pgvector; until then searches run in memory"
    )
    yield* fill.pipe(
      Effect.repeat({ until: (done) => done, schedule: Schedule.spaced("100 millis") }),
      Effect.zipRight(Effect.logInfo("All vectors are in the tables of pgvector")),
      Effect.forkScoped
    )
    return { table, filled: Ref.get(filled) }
  })
