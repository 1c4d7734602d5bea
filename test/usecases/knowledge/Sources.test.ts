import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { IngestionJobId, SourceId } from "../../../src/domain/Ids.ts"
import type { CreateSource } from "../../../src/domain/knowledge/Source.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { layerSettings } from "./ConnectorLayers.ts"

const live = Sources.Default.pipe(
  Layer.provide(Artifacts.Default),
  Layer.provide(layerSettings()),
  Layer.provideMerge(
    Layer.mergeAll(
      ArtifactRows.Default,
      SourceStore.Default,
      IngestionJobStore.Default,
      EntitlementStore.Default,
      IdempotencyKeyStore.Default,
      QueueTable.layerTable,
      layerMemory
    )
  )
)

const page = (name: string, autoSync = true): CreateSource => ({
  type: "URL",
  name,
  config: { url: "https://example.com/" },
  autoSync
})

const rows = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly n: number }>`select count(*)::int as n from ${sql(table)}`
    return row?.n ?? 0
  })

eachEngineLive("Knowledge sources", (it) => {
  it.scoped("are created PENDING, and with autoSync a job is created QUEUED", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent())
      const sources = yield* Sources
      const { source, ingestionJob } = yield* sources.create(key, page("One"))
      expect(source).toMatchObject({ status: "PENDING", type: "URL", name: "One", agentId: key.agentId })
      expect(ingestionJob).toMatchObject({
        status: "QUEUED",
        progress: 0,
        chunksCreated: null,
        type: "INGEST"
      })
      expect(yield* rows("queue_jobs")).toBe(1)
      const later = yield* sources.create(key, page("Two", false))
      expect(later.ingestionJob).toBeNull()
      expect(yield* rows("queue_jobs")).toBe(1)
      expect((yield* sources.get(key, later.source.id)).latestJob).toBeNull()
      expect((yield* sources.get(key, source.id)).latestJob).toMatchObject({
        id: ingestionJob?.id,
        status: "QUEUED"
      })
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "are created once for ten concurrent requests with one Idempotency-Key, which all get the same answer",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const key = yield* Fixtures.key(scope)
        const other = yield* Fixtures.key(scope)
        const sources = yield* Sources
        const created = yield* Effect.all(
          Array.from({ length: 10 }, () => sources.create(key, page("One"), "key-1")),
          { concurrency: "unbounded" }
        )
        expect(new Set(created.map((answer) => JSON.stringify(answer))).size).toBe(1)
        expect(yield* rows("sources")).toBe(1)
        yield* sources.create(other, page("One"), "key-1")
        expect(yield* rows("sources")).toBe(2)
        const sql = yield* SqlClient.SqlClient
        yield* sql`update idempotency_keys set created_at = now() - interval '25 hours'`
        yield* sources.create(key, page("One"), "key-1")
        expect(yield* rows("sources")).toBe(3)
      }).pipe(Effect.provide(live))
  )

  it.scoped(
    "beyond the entitlement are refused, also concurrently, and a refusal does not use up the key",
    () =>
      Effect.gen(function* () {
        yield* reset
        const key = yield* Fixtures.key(yield* Fixtures.agent({ sources: 2 }))
        const sources = yield* Sources
        const outcomes = yield* Effect.all(
          Array.from({ length: 6 }, () => Effect.either(sources.create(key, page("One")))),
          { concurrency: "unbounded" }
        )
        expect(outcomes.filter(Either.isRight).length).toBe(2)
        const refused = yield* Effect.flip(sources.create(key, page("Late"), "late"))
        expect(refused._tag).toBe("LIMIT_EXCEEDED")
        const sql = yield* SqlClient.SqlClient
        yield* sql`update subscriptions set sources_limit = 3`
        expect((yield* sources.create(key, page("Late"), "late")).source.name).toBe("Late")
        expect(yield* rows("sources")).toBe(3)
      }).pipe(Effect.provide(live))
  )

  it.scoped("are refused if the ingestion jobs of the period are used up", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent({ ingestionJobs: 1 }))
      const sources = yield* Sources
      yield* sources.create(key, page("One"))
      expect((yield* Effect.flip(sources.create(key, page("Two"))))._tag).toBe("LIMIT_EXCEEDED")
      expect(yield* rows("sources")).toBe(1)
    }).pipe(Effect.provide(live))
  )

  it.scoped("of questions are read again after a change of the questions, and not of metadata", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent())
      const sources = yield* Sources
      const sql = yield* SqlClient.SqlClient
      const pairs = [{ question: "When?", answer: "At seven." }]
      const { source } = yield* sources.create(key, {
        type: "QA",
        name: "Hours",
        config: { pairs },
        autoSync: true
      })
      yield* sql`update ingestion_jobs set status = 'SUCCEEDED'`
      yield* sources.patch(key, source.id, { config: { pairs, metadata: { audience: "staff" } } })
      expect(yield* rows("ingestion_jobs")).toBe(1)
      yield* sources.patch(key, source.id, {
        config: { pairs: [{ question: "When?", answer: "At eight." }] }
      })
      expect(yield* rows("ingestion_jobs")).toBe(2)
    }).pipe(Effect.provide(live))
  )

  it.scoped("synced while a job is queued return that job", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent())
      const sources = yield* Sources
      const { source, ingestionJob } = yield* sources.create(key, page("One"))
      const again = yield* sources.sync(key, source.id, { force: false })
      expect(again).toEqual({ jobId: ingestionJob?.id, status: "QUEUED", sourceId: source.id })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update ingestion_jobs set status = 'RUNNING'`
      const next = yield* sources.sync(key, source.id, { force: true })
      expect(next.jobId).not.toBe(ingestionJob?.id)
      expect(yield* sources.job(key, next.jobId)).toMatchObject({ type: "REINDEX", status: "QUEUED" })
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "synced with force while a job is queued return that job, which then reads everything again",
    () =>
      Effect.gen(function* () {
        yield* reset
        const key = yield* Fixtures.key(yield* Fixtures.agent())
        const sources = yield* Sources
        const jobs = yield* IngestionJobStore
        const { source, ingestionJob } = yield* sources.create(key, page("One"))
        const jobId = ingestionJob?.id ?? IngestionJobId.make("none")
        // A worker that has looked at the job and not begun yet learns of it, too.
        const seen = yield* Effect.flatten(jobs.task(key, jobId))
        expect(seen.jobType).toBe("INGEST")
        for (const force of [true, false, true]) {
          const again = yield* sources.sync(key, source.id, { force })
          expect(again).toEqual({ jobId, status: "QUEUED", sourceId: source.id })
          expect(yield* sources.job(key, jobId)).toMatchObject({ type: "REINDEX", status: "QUEUED" })
        }
        expect(yield* rows("ingestion_jobs")).toBe(1)
        const config = { url: "https://docs.example/two" }
        yield* sources.patch(key, source.id, { config })
        expect(yield* Effect.flatten(jobs.start(seen))).toEqual({
          ...seen,
          attempt: 1,
          jobType: "REINDEX",
          config
        })
      }).pipe(Effect.provide(live))
  )

  it.scoped("of another agent do not exist", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent())
      const stranger = yield* Fixtures.agent()
      const sources = yield* Sources
      const { source, ingestionJob } = yield* sources.create(key, page("One"))
      const outcomes = [
        yield* Effect.flip(sources.get(stranger, source.id)),
        yield* Effect.flip(sources.sync(stranger, source.id, { force: false })),
        yield* Effect.flip(sources.job(stranger, ingestionJob?.id ?? IngestionJobId.make("none"))),
        yield* Effect.flip(sources.get(key, SourceId.make("src_nothing")))
      ]
      expect(outcomes.map(({ _tag }) => _tag)).toEqual(["NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"])
      expect((yield* sources.list(stranger, { limit: 10 })).rows).toEqual([])
    }).pipe(Effect.provide(live))
  )

  it.scoped("are listed newest first, page by page, filtered by status and type", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent())
      const sources = yield* Sources
      for (const name of ["1", "2", "3", "4", "5"]) yield* sources.create(key, page(name, false))
      const first = yield* sources.list(key, { limit: 2 })
      const second = yield* sources.list(key, { limit: 2, after: first.next ?? "" })
      const third = yield* sources.list(key, { limit: 2, after: second.next ?? "" })
      const names = [first, second, third].map(({ rows }) => rows.map(({ name }) => name))
      expect(names).toEqual([["5", "4"], ["3", "2"], ["1"]])
      expect(third.next).toBeNull()
      expect((yield* sources.list(key, { limit: 9, status: "READY" })).rows).toEqual([])
      expect((yield* sources.list(key, { limit: 9, type: "URL", status: "PENDING" })).rows.length).toBe(5)
    }).pipe(Effect.provide(live))
  )
})
