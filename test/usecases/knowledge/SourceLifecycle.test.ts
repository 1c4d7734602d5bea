import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import {
  ArtifactStore,
  ArtifactStoreError,
  layerMemory,
  refOf
} from "../../../src/capabilities/ArtifactStore.ts"
import { JobQueue, JobQueueError } from "../../../src/capabilities/JobQueue.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { newId, QueueJobId, type SourceId } from "../../../src/domain/Ids.ts"
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

const stores = Layer.mergeAll(
  ArtifactRows.Default,
  SourceStore.Default,
  IngestionJobStore.Default,
  EntitlementStore.Default,
  IdempotencyKeyStore.Default
)

const over = <E1, R1, E2, R2>(
  queue: Layer.Layer<JobQueue, E1, R1>,
  store: Layer.Layer<ArtifactStore, E2, R2>
) =>
  Sources.Default.pipe(
    Layer.provideMerge(Artifacts.Default),
    Layer.provide(layerSettings()),
    Layer.provideMerge(Layer.mergeAll(stores, queue, store))
  )

const live = over(QueueTable.layerTable, layerMemory)

const page: CreateSource = { type: "URL", name: "Page", config: { url: "https://example.com/" } }
const hello = new TextEncoder().encode("hello")
const document = { name: "Hello", fileName: "hello.txt", bytes: hello }

const count = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly n: number }>`select count(*)::int as n from ${sql(table)}`
    return row?.n ?? 0
  })

/** Two live chunks and one of a generation that is being built. */
const fill = (scope: AgentScope, sourceId: SourceId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const documentId = yield* newId.document
    yield* sql`update sources set live_generation = 1, status = 'READY' where id = ${sourceId}`
    yield* sql`insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
      values (${documentId}, ${scope.tenantId}, ${scope.agentId}, ${sourceId}, 1, 'u', 't', '\\x00')`
    for (const [ordinal, version] of [1, 1, null].entries()) {
      yield* sql`insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
        values (${yield* newId.chunk}, ${scope.tenantId}, ${scope.agentId}, ${sourceId}, 1, ${documentId}, ${ordinal}, 'c', '\\x00', '', 5, ${version})`
    }
    yield* sql`insert into agent_stats as s (tenant_id, agent_id, version, chunk_count, length_sum)
      values (${scope.tenantId}, ${scope.agentId}, 1, 2, 10)
      on conflict (tenant_id, agent_id) do update set version = s.version + 1, chunk_count = s.chunk_count + 2, length_sum = s.length_sum + 10`
  })

const stats = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`
    select chunk_count::int as chunks, length_sum::int as length, version::int as version from agent_stats`
  return row
})

const started = Effect.gen(function* () {
  yield* reset
  return yield* Fixtures.key(yield* Fixtures.agent())
})

/** Runs the queued removals as a worker does. */
const cleanUp = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const artifacts = yield* Artifacts
  const jobs = yield* sql<{ readonly id: string; readonly payload: { readonly artifact: string } }>`
    delete from queue_jobs where queue = 'artifact-cleanup' returning id, payload`
  for (const { id, payload } of jobs) {
    const job = {
      id: QueueJobId.make(id),
      queue: "artifact-cleanup",
      payload,
      attempt: 1,
      lastAttempt: false
    } as const
    yield* artifacts.process(job)
  }
  return jobs.length
})

const kept = Effect.flatMap(ArtifactStore, (store) => Effect.map(store.get(refOf(hello)), Option.isSome))

eachEngineLive("A source's life", (it) => {
  it.scoped("ends with its jobs, documents, chunks and counts, and increments the version of the index", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      const { source } = yield* sources.create(key, page)
      const { source: other } = yield* sources.create(key, page)
      yield* fill(key, source.id)
      yield* fill(key, other.id)
      expect(yield* stats).toEqual({ chunks: 4, length: 20, version: 2 })
      yield* sources.remove(key, source.id)
      expect(yield* stats).toEqual({ chunks: 2, length: 10, version: 3 })
      expect([yield* count("sources"), yield* count("documents"), yield* count("chunks")]).toEqual([1, 1, 3])
      expect(yield* count("ingestion_jobs")).toBe(1)
      expect((yield* Effect.flip(sources.remove(key, source.id)))._tag).toBe("NOT_FOUND")
      expect((yield* Effect.flip(sources.sync(key, source.id, { force: false })))._tag).toBe("NOT_FOUND")
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "is not deleted while one of its jobs runs: ARTIFACT_DELETE_CONFLICT, and nothing has changed",
    () =>
      Effect.gen(function* () {
        const key = yield* started
        const sources = yield* Sources
        const jobs = yield* IngestionJobStore
        const { source, ingestionJob } = yield* sources.upload(key, "FILE", document)
        const waiting = Option.getOrThrow(
          yield* jobs.task(key, ingestionJob?.id ?? (yield* newId.ingestionJob))
        )
        const task = yield* Effect.flatten(jobs.start(waiting))
        expect((yield* Effect.flip(sources.remove(key, source.id)))._tag).toBe("ARTIFACT_DELETE_CONFLICT")
        expect(yield* cleanUp).toBe(0)
        yield* jobs.fail(task, "It ended.")
        yield* sources.remove(key, source.id)
        expect(yield* cleanUp).toBe(1)
        expect(yield* kept).toBe(false)
      }).pipe(Effect.provide(live))
  )

  it.scoped("is not deleted when the removal cannot be queued: ARTIFACT_DELETE_UNAVAILABLE", () =>
    Effect.gen(function* () {
      const key = yield* started
      const refuse = yield* Ref.make(false)
      const queue = Layer.mock(JobQueue, {
        enqueue: () =>
          Effect.flatMap(Ref.get(refuse), (no) =>
            no ? Effect.fail(new JobQueueError({ message: "Down." })) : newId.queueJob
          ),
        work: () => Effect.void,
        counts: Effect.succeed([])
      })
      yield* Effect.gen(function* () {
        const sources = yield* Sources
        const { source } = yield* sources.upload(key, "FILE", document)
        yield* Ref.set(refuse, true)
        expect((yield* Effect.flip(sources.remove(key, source.id)))._tag).toBe("ARTIFACT_DELETE_UNAVAILABLE")
        expect((yield* sources.get(key, source.id)).id).toBe(source.id)
        expect(yield* kept).toBe(true)
      }).pipe(Effect.provide(over(queue, layerMemory)))
    })
  )

  it.scoped("deleted while its job starts either stays with the running job, or is gone with it", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      const jobs = yield* IngestionJobStore
      for (let round = 0; round < 12; round++) {
        const { source, ingestionJob } = yield* sources.create(key, page)
        const task = Option.getOrThrow(yield* jobs.task(key, ingestionJob?.id ?? (yield* newId.ingestionJob)))
        const race = [Effect.either(sources.remove(key, source.id)), Effect.either(jobs.start(task))] as const
        const [removed] = yield* Effect.all(race, { concurrency: 2 })
        const left = yield* Effect.option(sources.get(key, source.id))
        if (Either.isRight(removed)) {
          expect(Option.isNone(left)).toBe(true)
          expect(Option.isNone(yield* jobs.task(task, task.jobId))).toBe(true)
        } else {
          expect(Option.getOrThrow(left)).toMatchObject({
            status: "PROCESSING",
            latestJob: { status: "RUNNING" }
          })
        }
      }
    }).pipe(Effect.provide(live))
  )

  it.scoped("deleted and synced at the same time either keeps its job or is gone without one", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      for (let round = 0; round < 12; round++) {
        const { source } = yield* sources.create(key, { ...page, autoSync: false })
        const [removed, synced] = yield* Effect.all(
          [
            Effect.either(sources.remove(key, source.id)),
            Effect.either(sources.sync(key, source.id, { force: false }))
          ],
          { concurrency: 2 }
        )
        expect(Either.isRight(removed)).toBe(true)
        if (Either.isLeft(synced)) expect(synced.left._tag).toBe("NOT_FOUND")
      }
      expect([yield* count("sources"), yield* count("ingestion_jobs")]).toEqual([0, 0])
    }).pipe(Effect.provide(live))
  )

  it.scoped("keeps an original that another source still needs", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      const first = yield* sources.upload(key, "FILE", document)
      const second = yield* sources.upload(key, "FILE", document)
      yield* sources.remove(key, first.source.id)
      expect(yield* cleanUp).toBe(1)
      expect(yield* kept).toBe(true)
      yield* sources.remove(key, second.source.id)
      yield* cleanUp
      expect(yield* kept).toBe(false)
      expect([yield* count("artifacts"), yield* count("artifact_claims")]).toEqual([0, 0])
    }).pipe(Effect.provide(live))
  )

  it.scoped("changes its name and its whole config, checked against its type", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      const { source } = yield* sources.create(key, {
        ...page,
        config: { url: "https://example.com/", maxDepth: 2 }
      })
      const renamed = yield* sources.patch(key, source.id, { name: "New" })
      expect(renamed).toMatchObject({ name: "New", config: { maxDepth: 2 }, status: "PENDING" })
      const moved = yield* sources.patch(key, source.id, { config: { url: "https://example.com/new" } })
      expect(moved.config).toEqual({ url: "https://example.com/new" })
      const refused = yield* Effect.flip(sources.patch(key, source.id, { config: { url: "ftp://canary" } }))
      expect(refused).toMatchObject({
        _tag: "VALIDATION_ERROR",
        details: { issues: [{ path: ["config", "url"] }] }
      })
      expect(JSON.stringify(refused)).not.toContain("canary")
      const stranger = yield* Fixtures.agent()
      expect((yield* Effect.flip(sources.patch(stranger, source.id, { name: "Mine" })))._tag).toBe(
        "NOT_FOUND"
      )
      expect((yield* Effect.flip(sources.remove(stranger, source.id)))._tag).toBe("NOT_FOUND")
      expect((yield* sources.get(key, source.id)).name).toBe("New")
    }).pipe(Effect.provide(live))
  )

  it.scoped("keeps the uploaded document after any change of its config", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      const { source } = yield* sources.upload(key, "FILE", document)
      const artifact = refOf(hello)
      const change = (config: Readonly<Record<string, unknown>>) => sources.patch(key, source.id, { config })
      expect((yield* change({ fileName: "b.txt" })).config).toEqual({ artifact, fileName: "b.txt" })
      expect((yield* change({ artifact, fileName: "c.txt" })).config).toEqual({ artifact, fileName: "c.txt" })
      for (const config of [{ artifact: refOf(new Uint8Array(1)) }, { fileUrl: "https://example.com/a" }]) {
        expect((yield* Effect.flip(change(config)))._tag).toBe("VALIDATION_ERROR")
      }
    }).pipe(Effect.provide(live))
  )

  it.scoped("takes no document from a change of its config if it was created without one", () =>
    Effect.gen(function* () {
      const key = yield* started
      const sources = yield* Sources
      const { source } = yield* sources.create(key, { type: "BULK_UPLOAD", name: "Manuals", config: {} })
      const config = { artifact: refOf(hello), metadata: { audience: "staff" } }
      const error = yield* Effect.flip(sources.patch(key, source.id, { config }))
      expect(error).toMatchObject({
        _tag: "VALIDATION_ERROR",
        details: {
          issues: [
            { path: ["config", "artifact"], message: "Expected none: only uploading a document stores it" }
          ]
        }
      })
      expect((yield* sources.get(key, source.id)).config).toEqual({})
    }).pipe(Effect.provide(live))
  )
})

/** A store whose removals wait or fail as the test says. */
const scripted = (remove: ArtifactStore["Type"]["remove"]) =>
  Layer.effect(
    ArtifactStore,
    Effect.map(ArtifactStore, (store) => ({
      ...store,
      remove: (ref) => Effect.zipRight(remove(ref), store.remove(ref))
    }))
  ).pipe(Layer.provide(layerMemory))

eachEngineLive("An uploaded original", (it) => {
  it.scoped("that is stored again during its removal exists for the new source", () =>
    Effect.gen(function* () {
      const key = yield* started
      const begun = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const store = scripted(() => Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(go)))
      yield* Effect.gen(function* () {
        const sources = yield* Sources
        const { source } = yield* sources.upload(key, "FILE", document)
        yield* sources.remove(key, source.id)
        const removal = yield* Effect.fork(cleanUp)
        yield* Deferred.await(begun)
        const again = yield* Effect.fork(sources.upload(key, "FILE", document))
        yield* Effect.yieldNow()
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(removal)
        yield* Fiber.join(again)
        expect(yield* kept).toBe(true)
        expect(yield* count("sources")).toBe(1)
      }).pipe(Effect.provide(over(QueueTable.layerTable, store)))
    })
  )

  it.scoped("is not removed after it was stored and before its source exists", () =>
    Effect.gen(function* () {
      const key = yield* started
      const artifacts = yield* Artifacts
      const sources = yield* Sources
      const { source } = yield* sources.upload(key, "FILE", document)
      yield* sources.remove(key, source.id)
      const claimed = yield* artifacts.keep(hello)
      yield* cleanUp
      yield* artifacts.sweep
      expect(yield* kept).toBe(true)
      yield* artifacts.abandon(claimed)
      yield* cleanUp
      expect(yield* kept).toBe(false)
    }).pipe(Effect.provide(live))
  )

  it.scoped("of a refused source is removed", () =>
    Effect.gen(function* () {
      yield* reset
      const key = yield* Fixtures.key(yield* Fixtures.agent({ ingestionJobs: 0 }))
      const sources = yield* Sources
      expect((yield* Effect.flip(sources.upload(key, "FILE", document)))._tag).toBe("LIMIT_EXCEEDED")
      yield* cleanUp
      expect(yield* kept).toBe(false)
      const left = [yield* count("sources"), yield* count("artifacts"), yield* count("ingestion_jobs")]
      expect(left).toEqual([0, 0, 0])
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "that could not be removed is removed by a later attempt, or by the sweep after all attempts have failed",
    () =>
      Effect.gen(function* () {
        const key = yield* started
        const failing = yield* Ref.make(true)
        const store = scripted(() =>
          Effect.flatMap(Ref.get(failing), (fail) =>
            fail ? Effect.fail(new ArtifactStoreError({ message: "Down." })) : Effect.void
          )
        )
        yield* Effect.gen(function* () {
          const sources = yield* Sources
          const artifacts = yield* Artifacts
          const { source } = yield* sources.upload(key, "FILE", document)
          yield* sources.remove(key, source.id)
          expect(yield* Effect.flip(cleanUp)).toMatchObject({ message: "Down.", fatal: false })
          yield* artifacts.sweep
          expect(yield* kept).toBe(true)
          yield* Ref.set(failing, false)
          yield* artifacts.sweep
          expect(yield* kept).toBe(false)
          expect(yield* count("artifacts")).toBe(0)
        }).pipe(Effect.provide(over(QueueTable.layerTable, store)))
      })
  )
})
