/**
 * The table of a profile's vectors: made when missing, then filled from `chunk_embeddings` in the background. Vectors that
 * are stored from then on come by a trigger, in the transaction that stores them, in any process.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import type { Profile } from "./PgvectorQuery.ts"

/** Vectors that are copied in one transaction: about half a second. */
const batch = 250

/** One batch; true when there is nothing left to copy. */
const fillOnce = (sql: SqlClient.SqlClient, profile: string) =>
  Effect.gen(function* () {
    yield* sql`/* every tenant: vectors */ select spoke_fill_vectors(${profile}, ${batch}::int)`
    const [row] = yield* sql<{ readonly filled: boolean }>`
      select filled from vector_profiles where profile = ${profile}`
    return row?.filled ?? false
  })

/**
 * Answers the profile's table, and whether it holds all vectors already. Resumes where another process, or an earlier
 * start, left the filling; a batch that fails is tried again, and searches go another way meanwhile.
 */
export const makeTable = (sql: SqlClient.SqlClient, profile: string, dimensions: number) =>
  Effect.gen(function* () {
    const made = sql<{ readonly name: string }>`/* every tenant: vectors */
      select spoke_vector_table(${profile}, ${dimensions}::int) as name`.pipe(
      sql.withTransaction,
      // Two processes that start, or a writer that holds the tables the other way round: one of them has to yield.
      Effect.retry({ times: 5, schedule: Schedule.jittered(Schedule.spaced("300 millis")) }),
      Effect.orDie
    )
    const [row] = yield* made
    const table: Profile = { table: row?.name ?? "", dimensions }
    const filled = yield* Ref.make(false)
    const fill = fillOnce(sql, profile).pipe(
      Effect.tap((done) => Ref.set(filled, done)),
      Effect.tapErrorCause((cause) =>
        Effect.logWarning("Vectors could not be copied; it is tried again", cause)
      ),
      Effect.orElseSucceed(() => false)
    )
    if (yield* fill) return { table, filled: Ref.get(filled) }
    yield* Effect.logInfo(
      "Vectors are being copied to where pgvector searches them; until then memory is searched"
    )
    yield* fill.pipe(
      Effect.repeat({ until: (done) => done, schedule: Schedule.spaced("100 millis") }),
      Effect.zipRight(Effect.logInfo("All vectors are where pgvector searches them")),
      Effect.forkScoped
    )
    return { table, filled: Ref.get(filled) }
  })
