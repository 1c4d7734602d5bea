/**
 * Removes the tables of vectors that release 0.1.0 filled for pgvector, in addition to `chunk_embeddings`: when no
 * process of that release is left and every vector is in pgvector's column.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import { isLockConflict } from "../database/Failure.ts"
import { hasVectorColumn } from "./VectorEncoding.ts"

/** Others wait for at most this time behind an attempt. It is repeated while a long reader holds a lock. */
const lockTimeout = "200ms"

interface Copies {
  readonly due: boolean
  readonly tables: ReadonlyArray<string>
}

const findCopies = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [there] = yield* sql<{ readonly found: boolean }>`
    select to_regclass('vector_profiles') is not null and (
      select pg_has_role(current_user, relowner, 'usage') from pg_class where oid = 'chunk_embeddings'::regclass
    ) as found`
  if (there?.found !== true || !(yield* hasVectorColumn(sql))) return { due: false, tables: [] }
  const [copies] = yield* sql<Copies>`/* every tenant: sweep */
    select not exists (select from chunk_embeddings where encoding < 2)
        and not exists (select from instances where not reads_float16 and lease_until > now()) as due,
      array(select 'chunk_vectors_' || number from vector_profiles) as tables`
  return copies ?? { due: false, tables: [] }
})

/** Removes them, if that is due. True when it did. */
const removeCopies = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { due, tables } = yield* findCopies
  if (!due) return false
  return yield* Effect.gen(function* () {
    yield* sql`select set_config('lock_timeout', ${lockTimeout}, true)`
    yield* Effect.forEach(tables, (table) => sql`drop table if exists ${sql(table)}`, { discard: true })
    yield* sql.unsafe(`
      drop trigger chunk_embeddings_added on chunk_embeddings;
      drop trigger chunk_embeddings_changed on chunk_embeddings;
      drop trigger chunk_embeddings_removed on chunk_embeddings;
      drop trigger chunk_embeddings_unseen on chunk_embeddings;
      drop function spoke_copy_vectors, spoke_drop_vectors, spoke_fill_vectors, spoke_vector_table, spoke_nearest,
        spoke_vector_type, spoke_floats, skip_unseen_vector;
      drop table vector_profiles;
      drop index chunks_agent_id`)
    return true
  }).pipe(
    sql.withTransaction,
    // Another process removes them, or a reader holds a lock for long.
    Effect.catchIf(isLockConflict, () => Effect.succeed(false))
  )
}).pipe(forEveryTenant("vectors"), Effect.orDie, Effect.withSpan("VectorCopies.remove"))

export class VectorCopiesStore extends Effect.Service<VectorCopiesStore>()("store/knowledge/VectorCopies", {
  effect: Effect.map(SqlClient.SqlClient, (sql) => ({
    remove: Effect.provideService(removeCopies, SqlClient.SqlClient, sql)
  }))
}) {}
