import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { JobQueue } from "../../../src/capabilities/JobQueue.ts"
import { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { newId, type SourceId } from "../../../src/domain/Ids.ts"
import {
  AttemptSuperseded,
  IngestionJobStore,
  type IngestionTask
} from "../../../src/store/knowledge/IngestionJobs.ts"
import { KnowledgeStore } from "../../../src/store/knowledge/Knowledge.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Ingest } from "../../../src/usecases/knowledge/Ingest.ts"
import { layerReaders, page, serveSite } from "../../readers/Site.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { addSource, layerIngest, sync } from "./IngestHarness.ts"

const live = Layer.merge(layerIngest, layerReaders)

const seen = (scope: AgentScope, source: SourceId) =>
  Effect.gen(function* () {
    const sources = yield* SourceStore
    const found = yield* sources.find(scope, source)
    return {
      status: found?.status,
      error: found?.lastError,
      job: found?.latestJob?.status,
      chunks: found?.embedding?.chunks
    }
  })

eachEngineLive("An ingestion job", (it) => {
  it.scoped("that takes longer than two hours fails with this reason, whatever it waits for", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const source = yield* addSource(scope, "FILE", { fileUrl: "https://example.com/a.txt" })
      const asked = yield* Deferred.make<void>()
      const silent = Layer.mock(OutboundHttp, {
        fetch: () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
      })
      yield* Effect.gen(function* () {
        const running = yield* Effect.fork(Effect.provide(sync(scope, source), silent))
        yield* Deferred.await(asked)
        yield* TestClock.adjust("119 minutes")
        expect(yield* seen(scope, source)).toMatchObject({ status: "PROCESSING", job: "RUNNING" })
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(running)
      }).pipe(Effect.provide(TestContext.TestContext))
      expect(yield* seen(scope, source)).toMatchObject({
        status: "FAILED",
        job: "FAILED",
        error: "timed_out: The source took too long to read."
      })
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "that has ended in the queue without a result is marked as failed; waiting and running jobs are not",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const jobs = yield* IngestionJobStore
        const queue = yield* JobQueue
        const ingest = yield* Ingest
        const add = (state: "waiting" | "active" | "failed" | "gone", running: boolean) =>
          Effect.gen(function* () {
            const sourceId = yield* addSource(scope, "URL", { url: "https://example.com/" })
            const { id: jobId } = yield* jobs.insert(scope, {
              id: yield* newId.ingestionJob,
              sourceId,
              type: "INGEST"
            })
            if (running) yield* Effect.flatMap(Effect.flatten(jobs.task(scope, jobId)), jobs.start)
            const id = yield* queue.enqueue(
              "ingestion",
              { tenantId: scope.tenantId, jobId },
              { serialKey: sourceId }
            )
            if (state === "gone") yield* sql`delete from queue_jobs where id = ${id}`
            else yield* sql`update queue_jobs set state = ${state} where id = ${id}`
            return sourceId
          })
        const waiting = yield* add("waiting", false)
        const between = yield* add("waiting", true)
        const active = yield* add("active", true)
        const failed = yield* add("failed", true)
        const gone = yield* add("gone", false)
        expect(yield* ingest.sweep).toBe(false)
        const states = Effect.forEach([waiting, between, active, failed, gone], (source) =>
          Effect.map(seen(scope, source), ({ job, status }) => `${status} ${job}`)
        )
        const ended = [
          "PENDING QUEUED",
          "PROCESSING RUNNING",
          "PROCESSING RUNNING",
          "FAILED FAILED",
          "FAILED FAILED"
        ]
        expect(yield* states).toEqual(ended)
        expect((yield* seen(scope, gone)).error).toMatch(/^worker_stopped: /)
        expect(yield* ingest.sweep).toBe(false)
        expect(yield* states).toEqual(ended)
      }).pipe(Effect.provide(live))
  )

  it.scoped("whose worker has lost its lease adds, removes and ends nothing", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const source = yield* addSource(scope, "URL", { url: "https://example.com/" })
      const sql = yield* SqlClient.SqlClient
      const jobs = yield* IngestionJobStore
      const knowledge = yield* KnowledgeStore
      const embedder = yield* Embedder
      const { id } = yield* jobs.insert(scope, {
        id: yield* newId.ingestionJob,
        sourceId: source,
        type: "INGEST"
      })
      const begin = Effect.flatten(Effect.flatMap(Effect.flatten(jobs.task(scope, id)), jobs.start))
      const add = (task: IngestionTask, uri: string) =>
        Effect.flatMap(newId.document, (documentId) =>
          knowledge.addDocuments(task, [
            { id: documentId, uri, title: uri, contentHash: "00".repeat(32), chunks: [] }
          ])
        )
      const goLive = (task: IngestionTask) =>
        Effect.zipRight(knowledge.swap(task, embedder), jobs.succeed(task, 0)).pipe(sql.withTransaction)
      const first = yield* begin
      yield* add(first, "first")
      const second = yield* begin
      yield* knowledge.discard(second)
      yield* add(second, "second")
      expect(yield* Effect.flip(add(first, "late"))).toBeInstanceOf(AttemptSuperseded)
      expect(yield* Effect.flip(goLive(first))).toBeInstanceOf(AttemptSuperseded)
      yield* knowledge.discard(first)
      expect([yield* jobs.recordFailure(first, "late"), yield* jobs.fail(first, "late")]).toEqual([
        false,
        false
      ])
      yield* goLive(second)
      expect(yield* Effect.flip(add(second, "too late"))).toBeInstanceOf(AttemptSuperseded)
      // Another worker takes the job that was done by one without a lease.
      expect(yield* jobs.start(second)).toEqual(Option.none())
      expect(yield* sql`select uri from documents`).toEqual([{ uri: "second" }])
      expect(yield* seen(scope, source)).toMatchObject({ status: "READY", job: "SUCCEEDED", error: null })
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "whose worker died in every attempt ends as failed with a reason, and earlier content stays searchable",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const site = yield* serveSite(() => ({ "/": page("Home") }))
        const source = yield* addSource(scope, "URL", { url: `${site.origin}/` })
        yield* sync(scope, source)
        expect(yield* seen(scope, source)).toMatchObject({ status: "READY", chunks: 1 })

        const jobs = yield* IngestionJobStore
        const knowledge = yield* KnowledgeStore
        const ingest = yield* Ingest
        const { id: jobId } = yield* jobs.insert(scope, {
          id: yield* newId.ingestionJob,
          sourceId: source,
          type: "INGEST"
        })
        const task = yield* Effect.flatten(jobs.start(yield* Effect.flatten(jobs.task(scope, jobId))))
        const contentHash = "00".repeat(32)
        yield* knowledge.addDocuments(task, [
          { id: yield* newId.document, uri: "half", title: "Half", contentHash, chunks: [] }
        ])
        const lost = {
          id: yield* newId.queueJob,
          queue: "ingestion",
          payload: { tenantId: scope.tenantId, jobId }
        } as const
        yield* ingest.failAbandoned({ ...lost, attempt: 3, lastAttempt: true })
        const failed = {
          status: "FAILED",
          job: "FAILED",
          error: "worker_stopped: The worker stopped before the job ended, each time it was tried.",
          chunks: 1
        }
        expect(yield* seen(scope, source)).toEqual(failed)
        // Told again, by another worker, it changes nothing; and the source can be read anew.
        yield* ingest.failAbandoned({ ...lost, attempt: 3, lastAttempt: true })
        expect(yield* seen(scope, source)).toEqual(failed)
        yield* sync(scope, source)
        expect(yield* seen(scope, source)).toMatchObject({ status: "READY", error: null, chunks: 1 })
      }).pipe(Effect.provide(live))
  )
})
