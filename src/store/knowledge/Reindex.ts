/** Documents whose chunks have an older index format, and their new index rows. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { ChunkId, DocumentId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import { indexFormat } from "./Knowledge.ts"

export interface OutdatedDocument extends AgentScope {
  readonly id: DocumentId
  readonly title: string
}

interface StoredChunk {
  readonly id: ChunkId
  readonly heading: string
  readonly content: string
}

export interface IndexedChunk {
  readonly id: ChunkId
  /** Text form of a tsvector. */
  readonly tsv: string
  readonly length: number
  readonly english: boolean
}

export class ReindexStore extends Effect.Service<ReindexStore>()("store/knowledge/Reindex", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const outdatedDocuments = (limit: number) =>
      sql<OutdatedDocument>`/* every tenant: sweep */
        select id, tenant_id as "tenantId", agent_id as "agentId", title from documents
        where index_format < ${indexFormat} and tenant_is_swept(tenant_id)
        order by agent_id, id limit ${limit}::int`.pipe(Effect.orDie)

    /** In reading order. */
    const chunks = ({ id, tenantId }: OutdatedDocument) =>
      sql<StoredChunk>`
        select id, heading, content from chunks
        where tenant_id = ${tenantId} and document_id = ${id} order by ordinal`.pipe(Effect.orDie)

    /**
     * Replaces the index rows. The agent's row is locked first, as by every change of what is searchable. Chunks that
     * are not English lose their vectors of `englishProfile`, which does not support them.
     */
    const replace = Effect.fn("ReindexStore.replace")(
      function* (
        document: OutdatedDocument,
        rows: ReadonlyArray<IndexedChunk>,
        englishProfile: string | null
      ) {
        const { agentId, id, tenantId } = document
        const [stats] = yield* sql<{ readonly version: string }>`
          insert into agent_stats as stats (tenant_id, agent_id, version) values (${tenantId}, ${agentId}, 1)
          on conflict (tenant_id, agent_id) do update set version = stats.version + 1 returning version`
        const version = stats?.version ?? "1"
        yield* sql`
          with fresh as materialized (
            select f.id, f.tsv::tsvector as tsv, f.length, f.english
            from jsonb_to_recordset(${toJsonb(rows)}::jsonb) as f (id text, tsv text, length int, english boolean)
          ),
          changed as materialized (
            select f.*, c.length as old_length, c.version is not null as live
            from fresh f join chunks c on c.tenant_id = ${opaque(sql, tenantId)} and c.id = f.id and c.document_id = ${id}
            where c.tsv <> f.tsv or c.length <> f.length or c.english <> f.english
          ),
          stats as (
            update agent_stats set length_sum = length_sum
              + coalesce((select sum(length - old_length) from changed where live), 0)
            where tenant_id = ${tenantId} and agent_id = ${agentId}
          )
          update chunks c set tsv = f.tsv, length = f.length, english = f.english,
            version = case when f.live then ${version}::bigint end
          from changed f where c.tenant_id = ${tenantId} and c.id = f.id`
        const notEnglish = rows.flatMap(({ english, id }) => (english ? [] : [id]))
        if (englishProfile !== null && notEnglish.length > 0) {
          yield* sql`
            delete from chunk_embeddings
            where tenant_id = ${opaque(sql, tenantId)} and profile = ${englishProfile}
              and chunk_id in (select jsonb_array_elements_text(${toJsonb(notEnglish)}::jsonb))`
        }
        yield* sql`update documents set index_format = ${indexFormat} where tenant_id = ${tenantId} and id = ${id}`
      },
      sql.withTransaction,
      Effect.orDie
    )

    return { outdatedDocuments, chunks, replace } as const
  })
}) {}
