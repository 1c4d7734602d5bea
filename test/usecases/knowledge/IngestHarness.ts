/** Sources that are ingested by the real use-case, with the real way out, and an embedder that counts. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerExtractive } from "../../../src/capabilities/ModelRuntime/extractive/Extractive.ts"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import type { CrawlEntry } from "../../../src/domain/knowledge/Crawl.ts"
import { newId, type SourceId } from "../../../src/domain/Ids.ts"
import type { SourceType } from "../../../src/domain/knowledge/Source.ts"
import { CrawlEntryStore } from "../../../src/store/knowledge/CrawlEntries.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { KnowledgeStore } from "../../../src/store/knowledge/Knowledge.ts"
import { OtherModelCallStore } from "../../../src/store/billing/OtherModelCalls.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { OtherModelCalls } from "../../../src/usecases/billing/OtherModelCalls.ts"
import { ConnectorPass } from "../../../src/usecases/knowledge/ConnectorPass.ts"
import { Ingest } from "../../../src/usecases/knowledge/Ingest.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { layerSettings } from "./ConnectorLayers.ts"

/** What ingestion stands on, but for the way out, the parser and the originals. */
export const layerIngestOf = (settings: ReturnType<typeof layerSettings>) =>
  Ingest.Default.pipe(
    Layer.provide([
      ConnectorPass.Default,
      // As the readers of the tests: no language model.
      OtherModelCalls.Default.pipe(Layer.provide(layerExtractive))
    ]),
    Layer.provideMerge(settings),
    Layer.provideMerge(
      Layer.mergeAll(
        SourceStore.Default,
        IngestionJobStore.Default,
        KnowledgeStore.Default,
        CrawlEntryStore.Default,
        QueueTable.layerTable,
        OtherModelCallStore.Default,
        ProcessLeases.Default,
        Layer.succeed(Embedder, makeHashing())
      )
    )
  )

export const layerIngest = layerIngestOf(layerSettings())

/** A source and nothing else. */
export const addSource = (scope: AgentScope, type: SourceType, config: unknown) =>
  Effect.gen(function* () {
    const sources = yield* SourceStore
    const id = yield* newId.source
    yield* sources.insert(scope, { id, type, name: "Site", labels: [], config })
    return id
  })

/** One attempt of a new job; what it came to is in the database. */
export const sync = (
  scope: AgentScope,
  sourceId: SourceId,
  { force = false, lastAttempt = true, attempts = 1 } = {}
) =>
  Effect.gen(function* () {
    const jobs = yield* IngestionJobStore
    const ingest = yield* Ingest
    const type = force ? "REINDEX" : "INGEST"
    const { id: jobId } = yield* jobs.insert(scope, { id: yield* newId.ingestionJob, sourceId, type })
    for (let attempt = 1; attempt <= attempts; attempt++) {
      yield* Effect.exit(
        ingest.process({
          id: yield* newId.queueJob,
          queue: "ingestion",
          payload: { tenantId: scope.tenantId, jobId },
          attempt,
          lastAttempt: lastAttempt && attempt === attempts
        })
      )
    }
    return jobId
  })

/** Gives each chunk that has no vector one; how many there were. */
export const embedAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { profile } = yield* Embedder
  const added = yield* sql`
    insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
    select c.tenant_id, c.id, ${profile}, c.agent_id, 1, decode('00', 'hex') from chunks c
    where c.version is not null
      and not exists (select 1 from chunk_embeddings e where e.chunk_id = c.id and e.profile = ${profile})
    returning chunk_id`
  return added.length
})

/** The lines of the source's report by path, in order. */
export const report = (scope: AgentScope, sourceId: SourceId, origin: string) =>
  Effect.gen(function* () {
    const entries = yield* CrawlEntryStore
    const job = yield* Effect.flatten(entries.lastJob(scope, sourceId))
    const lines = yield* entries.list(scope, sourceId, job.generation, { limit: 10_000 })
    return new Map<string, CrawlEntry>(lines.map((line) => [line.url.replace(origin, ""), line]))
  })

/** `outcome` or `outcome:reason`. */
export const told = (entry: CrawlEntry | undefined): string =>
  entry === undefined ? "not told" : entry.outcome + (entry.reason === null ? "" : `:${entry.reason}`)
