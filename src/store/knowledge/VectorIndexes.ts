/**
 * Indexes of the vectors of large agents, one for each, in databases with pgvector. A small agent has none: all of its
 * vectors are compared. The name of an index identifies its agent (`vector_index_name`), so no list of them is stored.
 * Building one takes minutes and blocks neither readers nor writers.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import { maxComparedVectors } from "../../domain/knowledge/StoredVector.ts"
import { isPooled, onOwnSession } from "../OwnSession.ts"
import { hasVectorColumn } from "./VectorEncoding.ts"

/** Maximum number of indexes: every statement on the table is planned with each. Other agents are searched exactly. */
const maxIndexes = 100
/** MiB of the server's memory for a build. What does not fit takes several times as long. */
const maxBuildMemory = 2_048

/** A statement that builds or removes an index. */
export interface IndexChange {
  readonly kind: "build" | "remove"
  readonly name: string
  readonly statement: string
  /** Chunks of the agent; 0 for a removal. */
  readonly chunks: number
  /** MiB that a build needs: for each vector its numbers, and the links to its neighbours. */
  readonly memory: number
}

export class VectorIndexStore extends Effect.Service<VectorIndexStore>()("store/knowledge/VectorIndexes", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const existing = sql`
      select c.relname::text as name, i.indisvalid as valid
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = 'chunk_embeddings'::regclass and starts_with(c.relname, 'vectors_of_')`

    /** The largest agents of at least `chunks` chunks, with the names of their indexes. */
    const largestAgents = (chunks: number) => sql`
      select tenant_id, agent_id, profile, chunk_count::int as chunks, vector_index_name(agent_id, profile) as name
      from agent_stats where chunk_count >= ${chunks}::int and profile is not null
      order by chunk_count desc, agent_id limit ${maxIndexes}::int`

    /** Unfinished indexes, and those of agents that are not large any more. */
    const obsoleteIndexes = (largerThan: number) => sql<IndexChange>`/* every tenant: sweep */
      select 'remove' as kind, name, format('drop index concurrently if exists %I', name) as statement, 0 as chunks, 0 as memory
      from (${existing}) found
      where not valid or name not in (select name from (${largestAgents(Math.ceil(largerThan / 2))}) a)`

    /** The agents that lack their index, and whose vectors are all converted. The largest comes first. */
    const missingIndexes = (largerThan: number) => sql<IndexChange>`/* every tenant: sweep */
      select 'build' as kind, a.name, a.chunks,
        64 + (a.chunks * (2 * dimensions + 1000)::float8 / 1048576)::int as memory,
        format(
          'create index concurrently %I on chunk_embeddings
            using hnsw ((vector::halfvec(%s)) halfvec_cosine_ops) with (m = 16, ef_construction = 128)
            where agent_id = %L and profile = %L and encoding = 2 and vector_dims(vector) = %s',
          a.name, dimensions, a.agent_id, a.profile, dimensions
        ) as statement
      from (${largestAgents(largerThan + 1)}) a
      cross join lateral (
        select vector_dims(e.vector) as dimensions from chunk_embeddings e
        where e.tenant_id = a.tenant_id and e.agent_id = a.agent_id and e.profile = a.profile and e.encoding = 2 limit 1
      ) one
      where dimensions <= 4000 and a.name not in (select name from (${existing}) found where valid)
        and not exists (
          select from chunk_embeddings e
          where e.tenant_id = a.tenant_id and e.agent_id = a.agent_id and e.encoding < 2)
      order by a.chunks desc`

    const isOwner = sql<{ readonly owned: boolean }>`
      select pg_has_role(current_user, relowner, 'usage') as owned from pg_class where oid = 'chunk_embeddings'::regclass`.pipe(
      Effect.map(([row]) => row?.owned === true)
    )

    const next = (largerThan: number) =>
      Effect.map(
        Effect.all([obsoleteIndexes(largerThan), missingIndexes(largerThan)]),
        ([removed, built]) => removed[0] ?? built[0] ?? null
      )

    /**
     * Makes the next change, unless another process makes one, whose index would look unfinished. The statement is
     * cancelled when the effect is interrupted, because migrations would wait for its lock.
     *
     * A build uses one process of the server. More would take its other cores from searches, and shared memory, of
     * which a container has 64 MB.
     */
    const run = (largerThan: number) =>
      Effect.gen(function* () {
        const outerContext = yield* Effect.context<never>()
        const work = Effect.gen(function* () {
          const [session] = yield* sql<{ readonly pid: number; readonly mine: boolean }>`
            select pg_backend_pid() as pid, pg_try_advisory_lock(hashtextextended('vector indexes', 0)) as mine`
          if (session?.mine !== true) return null
          yield* Effect.addFinalizer(() =>
            Effect.ignore(
              sql`select pg_advisory_unlock(hashtextextended('vector indexes', 0))`.pipe(
                Effect.zipRight(sql`reset maintenance_work_mem`),
                Effect.zipRight(sql`reset max_parallel_maintenance_workers`)
              )
            )
          )
          const change = yield* next(largerThan)
          if (change === null) return null
          const { memory, statement } = change
          yield* sql`select set_config('max_parallel_maintenance_workers', '0', false)`
          yield* sql`
            select set_config('maintenance_work_mem', ${`${Math.min(memory, maxBuildMemory)}MB`}, false)
            where pg_size_bytes(current_setting('maintenance_work_mem')) < ${Math.min(memory, maxBuildMemory)}::bigint * 1048576`
          const cancel = Effect.ignore(sql`select pg_cancel_backend(${session.pid}::int)`)
          yield* Effect.onInterrupt(sql.unsafe(statement), () =>
            Effect.mapInputContext(cancel, (_: Context.Context<never>) => outerContext)
          )
          return change
        }).pipe(Effect.scoped)
        return yield* onOwnSession(work)
      })

    /**
     * Builds the index of one agent with more than `largerThan` chunks, or removes that of an agent with less than half
     * as many. Returns the change; null when there is none to make, or another process makes it.
     */
    const tend = (largerThan: number) =>
      Effect.gen(function* () {
        if (!(yield* hasVectorColumn(sql)) || !(yield* isOwner)) return null
        if ((yield* next(largerThan)) === null) return null
        if (yield* isPooled) {
          yield* Effect.logWarning(
            "A pooler before PostgreSQL does not let indexes of large agents be built: " +
              "run spoke migrate with SPOKE_DATABASE_DIRECT_URL, the address of the server itself"
          )
          return null
        }
        return yield* run(largerThan)
      }).pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        forEveryTenant("vectors"),
        Effect.orDie,
        Effect.withSpan("VectorIndexStore.tend")
      )

    /** Number of large agents without an index, which are searched exactly until it is built. */
    const countMissing = Effect.gen(function* () {
      return (yield* hasVectorColumn(sql)) ? (yield* missingIndexes(maxComparedVectors)).length : 0
    }).pipe(forEveryTenant("vectors"), Effect.orDie)

    return { tend, countMissing } as const
  })
}) {}
