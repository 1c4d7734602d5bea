/**
 * How vectors are stored: as float16, in pgvector's column if the database has it, else as bytes. Rows with another
 * encoding (of release 0.1.0, of an archive, or from before the extension) are read by searches and converted in
 * batches.
 *
 * A process of release 0.1.0 reads only float32 bytes. While one is running, vectors are written in that form, and none
 * is converted.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import { decodeVector, encodeFloat32, encodeVector, vectorText } from "../../domain/knowledge/StoredVector.ts"

/** Vectors converted before yielding to the event loop: about two milliseconds. */
const vectorsBetweenPauses = 16

/** True when the database has pgvector's column. */
export const hasVectorColumn = (sql: SqlClient.SqlClient) =>
  Effect.map(vectorForm(sql), ({ column }) => column)

/** How a vector is to be stored now. */
export interface VectorForm {
  /** True when the database has pgvector's column. */
  readonly column: boolean
  /** 0: float32 bytes, 1: float16 bytes, 2: in pgvector's column. */
  readonly encoding: 0 | 1 | 2
}

export const vectorForm = (sql: SqlClient.SqlClient) =>
  sql<{ readonly column: boolean; readonly former: boolean }>`
    select exists (
        select from pg_attribute
        where attrelid = 'chunk_embeddings'::regclass and attname = 'vector' and not attisdropped
      ) as column,
      exists (select from instances where not reads_float16 and lease_until > now()) as former`.pipe(
    Effect.map(([row]): VectorForm => {
      const column = row?.column === true
      if (row?.former === true) return { column, encoding: 0 }
      return { column, encoding: column ? 2 : 1 }
    })
  )

/** The parameter from which a statement makes a stored vector: the text of a `halfvec`, else bytes in base64. */
export const vectorParameter = (encoding: VectorForm["encoding"], vector: Float32Array): string => {
  if (encoding === 2) return vectorText(vector)
  return Buffer.from(encoding === 1 ? encodeVector(vector) : encodeFloat32(vector)).toString("base64")
}

interface UnconvertedVector {
  readonly tenantId: string
  readonly agentId: string
  readonly chunkId: string
  readonly profile: string
  readonly embedding: Uint8Array
}

/** The agent whose vectors are being converted. */
export interface ConversionCursor {
  readonly tenantId: string
  readonly agentId: string
}

export const conversionStart: ConversionCursor = { tenantId: "", agentId: "" }

export class VectorEncodingStore extends Effect.Service<VectorEncodingStore>()(
  "store/knowledge/VectorEncoding",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** The rows to convert. The text must be the condition of an index, which is empty when nothing is left. */
      const isUnconverted = (native: boolean) => (native ? sql`encoding < 2` : sql`encoding = 0`)

      /** Number of vectors that are still to be converted. */
      const countWaiting = Effect.gen(function* () {
        const native = yield* hasVectorColumn(sql)
        const [row] = yield* sql<{ readonly count: number }>`/* every tenant: sweep */
          select count(*)::int as count from chunk_embeddings where ${isUnconverted(native)}`
        return row?.count ?? 0
      }).pipe(Effect.orDie, Effect.withSpan("VectorEncodingStore.countWaiting"))

      /** Rows of a tenant that is being moved are written by the move alone, except those that are float16 already. */
      const mayChange = sql`(
        encoding = 1 or tenant_id not in (select tenant from tenant_moves where state <> 'serving'))`

      const next = (native: boolean, { agentId, tenantId }: ConversionCursor, size: number) =>
        sql<UnconvertedVector>`/* every tenant: sweep */
          select tenant_id as "tenantId", agent_id as "agentId", chunk_id as "chunkId", profile, embedding
          from chunk_embeddings
          where ${isUnconverted(native)} and ${mayChange} and (tenant_id, agent_id) >= (${tenantId}, ${agentId})
          order by tenant_id, agent_id limit ${size}::int for no key update skip locked`

      /** `vectors` are in the order of `rows`. */
      const store = (
        native: boolean,
        rows: ReadonlyArray<UnconvertedVector>,
        vectors: ReadonlyArray<string>
      ) => {
        const texts = (of: (row: UnconvertedVector) => string) => sql`${rows.map(of)}::text[]`
        const given = sql`
          from unnest(${texts(({ tenantId }) => tenantId)}, ${texts(({ chunkId }) => chunkId)},
            ${texts(({ profile }) => profile)}, ${[...vectors]}::text[]) as g (tenant_id, chunk_id, profile, vector)
          where e.tenant_id = g.tenant_id and e.chunk_id = g.chunk_id and e.profile = g.profile`
        return native
          ? sql`/* every tenant: sweep */
            update chunk_embeddings e set encoding = 2, embedding = null, vector = g.vector::halfvec,
              source_id = (select c.source_id from chunks c where c.tenant_id = e.tenant_id and c.id = e.chunk_id)
            ${given}`
          : sql`/* every tenant: sweep */
            update chunk_embeddings e set encoding = 1, embedding = decode(g.vector, 'base64') ${given}`
      }

      /**
       * Converts at most `size` vectors, from `cursor` on; none while a process of 0.1.0 is running. Other processes
       * convert others at the same time. `next` is where the next batch begins; null after the last one.
       */
      const convert = (cursor: ConversionCursor, size: number) =>
        Effect.gen(function* () {
          const { encoding } = yield* vectorForm(sql)
          if (encoding === 0) return { count: 0, next: null }
          const native = encoding === 2
          const rows = yield* next(native, cursor, size)
          const last = rows.at(-1)
          if (last === undefined) return { count: 0, next: null }
          const vectors: Array<string> = []
          for (const [at, { embedding }] of rows.entries()) {
            vectors.push(vectorParameter(encoding, decodeVector(embedding)))
            if (at % vectorsBetweenPauses === 0) yield* yieldToEventLoop
          }
          yield* store(native, rows, vectors)
          return { count: rows.length, next: { tenantId: last.tenantId, agentId: last.agentId } }
        }).pipe(sql.withTransaction, Effect.orDie, Effect.withSpan("VectorEncodingStore.convert"))

      return { countWaiting, convert } as const
    })
  }
) {}
