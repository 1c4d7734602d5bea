/** The indexes of large agents, which workers build and remove (see store/knowledge/VectorIndexes.ts). */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** An agent is searched exactly until its new index is in the list, and also while a removed index is still in it. */
const interval = "10 seconds"

/** The names of the usable indexes. They are read when the scope begins, and then every ten seconds. */
export const makeIndexes = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const names = new Set<string>()
    const read = Effect.map(
      sql<{ readonly name: string }>`
        select c.relname::text as name from pg_index i join pg_class c on c.oid = i.indexrelid
        where i.indrelid = 'chunk_embeddings'::regclass and i.indisvalid and starts_with(c.relname, 'vectors_of_')`,
      (rows) => {
        names.clear()
        for (const { name } of rows) names.add(name)
      }
    )
    yield* Effect.orDie(read)
    yield* read.pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("The indexes of vectors could not be read", cause)),
      Effect.schedule(Schedule.spaced(interval)),
      Effect.forkScoped
    )
    return { has: (name: string): boolean => names.has(name) } as const
  })
