/** Vectors of live chunks: finds missing ones and stores new ones. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { AgentId, ChunkId, type SourceId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import { vectorForm, vectorParameter } from "./VectorEncoding.ts"

export const UnembeddedChunk = Schema.Struct({
  id: ChunkId,
  agentId: AgentId,
  title: Schema.String,
  heading: Schema.String,
  content: Schema.String
})
export type UnembeddedChunk = typeof UnembeddedChunk.Type

/** An embedding model, as far as it determines which chunks need a vector. */
export interface EmbeddingModel {
  readonly profile: string
  readonly englishOnly?: boolean
}

/** True for the chunks `c` that `model` supports. */
export const supportsChunk = (sql: SqlClient.SqlClient, model: EmbeddingModel) =>
  model.englishOnly === true ? sql`c.english` : sql`true`

export interface ChunkVector {
  readonly id: ChunkId
  readonly vector: Float32Array
}

export class EmbeddingStore extends Effect.Service<EmbeddingStore>()("store/knowledge/Embeddings", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Live chunks of the source that `model` supports and that have no vector of it yet. */
    const chunksWithoutVector = (
      { tenantId }: TenantScope,
      sourceId: SourceId,
      model: EmbeddingModel,
      limit: number
    ) =>
      SqlSchema.findAll({
        Request: Schema.Void,
        Result: UnembeddedChunk,
        execute: () => sql`
          select c.id, c.agent_id as "agentId", d.title, c.heading, c.content
          from chunks c join documents d on d.tenant_id = c.tenant_id and d.id = c.document_id
          where c.tenant_id = ${opaque(sql, tenantId)} and c.source_id = ${sourceId} and c.version is not null
            and ${supportsChunk(sql, model)} and not exists (
            select 1 from chunk_embeddings e where e.tenant_id = c.tenant_id and e.chunk_id = c.id and e.profile = ${model.profile}
          )
          order by c.document_id, c.ordinal limit ${limit}`
      })(undefined).pipe(Effect.orDie, Effect.withSpan("EmbeddingStore.chunksWithoutVector"))

    /**
     * Stores vectors. Chunks that were deleted or excluded in the meantime are skipped. The first vectors decide the
     * agent's profile. Those of another profile are stored in addition, and do not change what is searched now.
     */
    const addVectors = Effect.fn("EmbeddingStore.addVectors")(
      function* ({ agentId, tenantId }: AgentScope, profile: string, vectors: ReadonlyArray<ChunkVector>) {
        const [stats] = yield* sql<{ readonly version: string }>`
          insert into agent_stats as stats (tenant_id, agent_id, version, profile, profile_since)
          values (${tenantId}, ${agentId}, 1, ${profile}, now())
          on conflict (tenant_id, agent_id) do update set
            profile = coalesce(stats.profile, ${profile}),
            profile_since = coalesce(stats.profile_since, now()),
            version = stats.version + case when coalesce(stats.profile, ${profile}) = ${profile} then 1 else 0 end
          returning version`
        const { column, encoding } = yield* vectorForm(sql)
        const rows = vectors.map(({ id, vector }) => ({ id, vector: vectorParameter(encoding, vector) }))
        const bytes = encoding === 2 ? sql`null::bytea` : sql`decode(v.vector, 'base64')`
        const native = encoding === 2 ? sql`c.source_id, v.vector::halfvec` : sql`null, null`
        yield* sql`
          insert into chunk_embeddings
            (tenant_id, chunk_id, profile, agent_id, version, encoding, embedding ${column ? sql`, source_id, vector` : sql``})
          select c.tenant_id, c.id, ${profile}, c.agent_id, ${stats?.version ?? "1"}::bigint, ${encoding}::smallint,
            ${bytes} ${column ? sql`, ${native}` : sql``}
          from jsonb_to_recordset(${toJsonb(rows)}::jsonb) as v (id text, vector text)
          join chunks c on c.tenant_id = ${opaque(sql, tenantId)} and c.id = v.id and c.agent_id = ${agentId} and not c.excluded
          on conflict (tenant_id, chunk_id, profile) do update set version = excluded.version,
            encoding = excluded.encoding, embedding = excluded.embedding
            ${column ? sql`, source_id = excluded.source_id, vector = excluded.vector` : sql``}`
      },
      sql.withTransaction,
      Effect.orDie
    )

    return { chunksWithoutVector, addVectors } as const
  })
}) {}
