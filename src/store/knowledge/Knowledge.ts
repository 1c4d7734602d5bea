/**
 * Documents and chunks. The next generation is built separately, document by document, and goes live in one
 * transaction. Every transaction that changes what is searchable raises the agent's index version under its row lock,
 * so that readers who ask for changes since a version miss nothing.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { ChunkId, DocumentId } from "../../domain/Ids.ts"
import { type EmbeddingModel, supportsChunk } from "./Embeddings.ts"
import { holdAttempt, type IngestionTask } from "./IngestionJobs.ts"
import { restartScanIfFull } from "./PassageScans.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"
import { hasVectorColumn } from "./VectorEncoding.ts"

export interface NewDocument {
  readonly id: DocumentId
  readonly uri: string
  readonly title: string
  /** SHA-256, hexadecimal. */
  readonly contentHash: string
  readonly chunks: ReadonlyArray<NewChunk>
}

export interface NewChunk {
  readonly id: ChunkId
  readonly ordinal: number
  readonly heading: string
  readonly content: string
  /** SHA-256 of the embedded text, hexadecimal. Equal text keeps its vector. */
  readonly contentHash: string
  /** Text form of a tsvector. */
  readonly tsv: string
  readonly length: number
  readonly english: boolean
}

/** Version of the index format. Documents of a lower version are indexed again (see store/knowledge/Reindex.ts). */
export const indexFormat = 3

interface ChunkOf {
  readonly documentId: DocumentId
}

/** Maximum number of rows of one insert statement. */
const batchSize = 500

export class KnowledgeStore extends Effect.Service<KnowledgeStore>()("store/knowledge/Knowledge", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const insertDocuments = (task: IngestionTask, documents: ReadonlyArray<NewDocument>) => sql`
      insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash, index_format)
      select d.id, ${task.tenantId}, ${task.agentId}, ${task.sourceId}, ${task.generation}, d.uri, d.title, decode(d."contentHash", 'hex'),
        ${indexFormat}::smallint
      from jsonb_to_recordset(${toJsonb(documents.map(({ chunks: _, ...document }) => document))}::jsonb) as d (
        id text, uri text, title text, "contentHash" text
      )`

    const insertChunks = (task: IngestionTask, chunks: ReadonlyArray<NewChunk & ChunkOf>) => sql`
      insert into chunks (
        id, tenant_id, agent_id, source_id, generation, document_id, ordinal, heading, content, content_hash, tsv, length,
        english
      )
      select c.id, ${task.tenantId}, ${task.agentId}, ${task.sourceId}, ${task.generation}, c."documentId", c.ordinal, c.heading, c.content,
        decode(c."contentHash", 'hex'), c.tsv::tsvector, c.length, c.english
      from jsonb_to_recordset(${toJsonb(chunks)}::jsonb) as c (
        id text, "documentId" text, ordinal int, heading text, content text, "contentHash" text, tsv text, length int, english boolean
      )`

    /** Adds documents to the generation that is being built, all of them or none. Fails for a superseded attempt. */
    const addDocuments = Effect.fn("KnowledgeStore.addDocuments")(
      function* (task: IngestionTask, documents: ReadonlyArray<NewDocument>) {
        if (documents.length === 0) return
        yield* holdAttempt(sql, task)
        yield* insertDocuments(task, documents)
        const rows = documents.flatMap(({ chunks, id: documentId }) =>
          chunks.map((chunk) => ({ ...chunk, documentId }))
        )
        yield* Effect.forEach(Arr.chunksOf(rows, batchSize), (batch) => insertChunks(task, batch), {
          discard: true
        })
      },
      sql.withTransaction,
      Effect.catchTag("SqlError", Effect.die)
    )

    /** Removes the documents of this attempt and of earlier ones. No effect for a superseded attempt. */
    const discard = (task: IngestionTask) =>
      sql`
        delete from documents d using sources s
        where d.tenant_id = ${task.tenantId} and d.source_id = ${task.sourceId} and d.generation = ${task.generation}
          and s.tenant_id = d.tenant_id and s.id = d.source_id and s.live_generation <> d.generation
          and exists (
            select from ingestion_jobs where tenant_id = ${task.tenantId} and id = ${task.jobId} and attempt = ${task.attempt}
          )`.pipe(Rows.none, Effect.withSpan("KnowledgeStore.discard"))

    const raiseVersion = ({ agentId, tenantId }: AgentScope) =>
      sql<{ readonly version: string }>`
        insert into agent_stats as stats (tenant_id, agent_id, version) values (${tenantId}, ${agentId}, 1)
        on conflict (tenant_id, agent_id) do update set version = stats.version + 1
        returning version`.pipe(Effect.map(([row]) => row?.version ?? "1"))

    /**
     * Copies the vectors of old chunks to new ones with the same text. Both are grouped by text instead of joined,
     * because the planner has no statistics of the new rows yet, assumes one row, and would use a nested loop.
     */
    const copyVectors = (task: IngestionTask, version: string, hasColumn: boolean) => {
      const vectorColumns = hasColumn ? sql`, vector, source_id` : sql``
      return sql`
      with old as (
        select distinct on (c.content_hash, e.profile) c.content_hash, e.profile, e.chunk_id
        from sources s
        join chunks c on c.tenant_id = s.tenant_id and c.source_id = s.id and c.generation = s.live_generation
        join chunk_embeddings e on e.tenant_id = c.tenant_id and e.chunk_id = c.id
        where s.tenant_id = ${opaque(sql, task.tenantId)} and s.id = ${task.sourceId}
      ),
      alike as (
        select array_agg(fresh) filter (where fresh is not null) as fresh,
          array_agg(chunk_id) filter (where chunk_id is not null) as chunk_ids,
          array_agg(profile) filter (where chunk_id is not null) as profiles
        from (
          select content_hash, id as fresh, null as chunk_id, null as profile
          from chunks
          where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and generation = ${task.generation}
            and not excluded
          union all
          select content_hash, null, chunk_id, profile from old
        ) both_generations
        group by content_hash
      )
      insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, encoding, embedding ${vectorColumns})
      select e.tenant_id, f.id, e.profile, e.agent_id, ${version}::bigint, encoding, embedding ${vectorColumns}
      from alike
      cross join lateral unnest(alike.fresh) as f (id)
      cross join lateral unnest(alike.chunk_ids, alike.profiles) as o (chunk_id, profile)
      join chunk_embeddings e on e.tenant_id = ${opaque(sql, task.tenantId)} and e.chunk_id = o.chunk_id and e.profile = o.profile
      on conflict do nothing`
    }

    /**
     * Moves documents of the live generation into the new one, with chunks and vectors. Dies unless all of them exist:
     * one that was removed since the job began would be missing unnoticed.
     */
    const moveDocuments = (task: IngestionTask, uris: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        if (uris.length === 0) return
        const moved = yield* sql<{ readonly id: string }>`
          update documents d set generation = ${task.generation}
          from sources s
          where s.tenant_id = ${task.tenantId} and s.id = ${task.sourceId}
            and d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation
            and d.uri = any (array(select jsonb_array_elements_text(${toJsonb(uris)}::jsonb)))
          returning d.id`
        if (moved.length !== uris.length) {
          return yield* Effect.dieMessage("A document that should remain has been removed in the meantime.")
        }
        // By the chunk's own document, not by the list of documents: a nested loop over both would be quadratic.
        yield* sql`
          update chunks c set generation = ${task.generation}
          where c.tenant_id = ${task.tenantId} and c.source_id = ${task.sourceId} and c.generation <> ${task.generation}
            and (select d.generation from documents d where d.tenant_id = c.tenant_id and d.id = c.document_id) = ${task.generation}`
      })

    /** Marks new chunks whose text is excluded in the source. They go live, but search does not find them. */
    const markExcluded = (task: IngestionTask) => sql`
      update chunks c set excluded = true
      from passage_exclusions x
      where x.tenant_id = ${task.tenantId} and x.source_id = ${task.sourceId}
        and c.tenant_id = x.tenant_id and c.source_id = x.source_id and c.generation = ${task.generation}
        and sha256(convert_to(c.content, 'UTF8')) = x.text_hash`

    /**
     * Makes the generation live, with the documents `kept` of the old one, and removes the rest of the old one. The
     * caller's transaction also ends the job. Fails for a superseded attempt. Returns the number of chunks, and of
     * chunks that `model` supports and that have no vector.
     */
    const swap = Effect.fn("KnowledgeStore.swap")(
      function* (task: IngestionTask, model: EmbeddingModel, kept: ReadonlyArray<string> = []) {
        // Locks the agent's index first, as the removal of a source does.
        const version = yield* raiseVersion(task)
        yield* holdAttempt(sql, task)
        yield* markExcluded(task)
        // Before documents are moved, so that new chunks can also copy vectors of documents that stay.
        if (task.jobType === "INGEST") yield* copyVectors(task, version, yield* hasVectorColumn(sql))
        yield* moveDocuments(task, kept)
        yield* sql`
        with delta as (
          select coalesce(sum(case when version is null then 1 else -1 end), 0) as chunks,
            coalesce(sum(case when version is null then length else -length end), 0) as length
          from chunks
          where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and (generation = ${task.generation} and not excluded) <> (version is not null)
        )
        update agent_stats set chunk_count = chunk_count + delta.chunks, length_sum = length_sum + delta.length
        from delta where tenant_id = ${task.tenantId} and agent_id = ${task.agentId}`
        yield* sql`
        update chunks set version = ${version}::bigint
        where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and generation = ${task.generation}
          and not excluded`
        yield* restartScanIfFull(
          sql,
          task,
          sql`c.source_id = ${task.sourceId} and c.generation <> ${task.generation}`
        )
        yield* sql`
        delete from documents
        where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and generation <> ${task.generation}`
        const [counts] = yield* sql<{ readonly chunks: number; readonly unembedded: number }>`
        select count(*)::int as chunks,
          count(*) filter (where e.chunk_id is null and not c.excluded and ${supportsChunk(sql, model)})::int as unembedded
        from chunks c
        left join chunk_embeddings e
          on e.tenant_id = c.tenant_id and e.chunk_id = c.id and e.profile = ${model.profile}
        where c.tenant_id = ${opaque(sql, task.tenantId)} and c.source_id = ${task.sourceId} and c.generation = ${task.generation}`
        return { chunks: counts?.chunks ?? 0, unembedded: counts?.unembedded ?? 0 }
      },
      Effect.catchTag("SqlError", Effect.die)
    )

    return { addDocuments, discard, swap } as const
  })
}) {}
