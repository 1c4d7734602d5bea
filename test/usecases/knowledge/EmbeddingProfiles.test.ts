import { expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import {
  Embedder,
  EmbedderError,
  type EmbedderService,
  OtherEmbedders
} from "../../../src/capabilities/Embedder.ts"
import { JobQueue, type QueueJob } from "../../../src/capabilities/JobQueue.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { QueueJobId, type SourceId } from "../../../src/domain/Ids.ts"
import { EmbeddingProfileStore } from "../../../src/store/knowledge/EmbeddingProfiles.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Embed } from "../../../src/usecases/knowledge/Embed.ts"
import { EmbeddingProfiles } from "../../../src/usecases/knowledge/EmbeddingProfiles.ts"
import { ingest, page, source, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const small = makeHashing({ dimensions: 64 })
const large = makeHashing({ dimensions: 256 })

/** A process whose configuration names `current`; `others` are models that it can still reach. */
const started = (current: EmbedderService, others: ReadonlyArray<EmbedderService> = []) =>
  Layer.mergeAll(
    Embed.Default,
    EmbeddingProfiles.Default,
    layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity })
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(stores, EmbeddingProfileStore.Default, SourceStore.Default, layerTable)
    ),
    Layer.provideMerge(
      Layer.merge(
        Layer.succeed(Embedder, current),
        Layer.succeed(OtherEmbedders, {
          of: (profile) =>
            Effect.succeed(Option.fromNullable(others.find((other) => other.profile === profile)))
        })
      )
    )
  )

const job = (tenantId: string, sourceId: SourceId, lastAttempt = false): QueueJob => ({
  id: QueueJobId.make("job_1"),
  queue: "embedding",
  payload: { tenantId, sourceId },
  attempt: 1,
  lastAttempt
})
const embed = (sourceId: SourceId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [scope] = yield* sql<{
      readonly id: string
    }>`select tenant_id as id from sources where id = ${sourceId}`
    return yield* (yield* Embed).process(job(scope?.id ?? "ten_none", sourceId))
  })

const search = (scope: ReadScope, text: string) =>
  Effect.flatMap(VectorSearch, ({ search }) => search(scope, { text, topK: 5, minScore: 0 }))

const state = (scope: ReadScope, id: SourceId) =>
  Effect.flatMap(SourceStore, (sources) => Effect.map(sources.find(scope, id), (found) => found?.embedding))
const activeOf = (scope: ReadScope) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ profile: string }>`select profile from agent_stats where agent_id = ${scope.agentId}`,
      ([row]) => row?.profile
    )
  )
const vectorsOf = (profile: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ count: number }>`select count(*)::int as count from chunk_embeddings where profile = ${profile}`,
      ([row]) => row?.count
    )
  )

/** What waits in the queue, done by this process. */
const work = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    id: string
    source: SourceId
  }>`select id, payload ->> 'sourceId' as source from queue_jobs where queue = 'embedding' and state = 'waiting'`
  for (const { id, source: sourceId } of rows) {
    yield* embed(sourceId)
    yield* sql`delete from queue_jobs where id = ${id}`
  }
})
const setTarget = Effect.flatMap(EmbeddingProfiles, (profiles) => profiles.setTarget)
const sweep = Effect.flatMap(EmbeddingProfiles, (profiles) => profiles.sweep)

/** An agent that answers with vectors of `small`. */
const before = (texts: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* reset
    const scope = yield* Fixtures.agent()
    const ids: Array<SourceId> = []
    for (const text of texts) {
      const id = yield* source(scope)
      yield* ingest(scope, id, [page(text)])
      yield* embed(id)
      ids.push(id)
    }
    return { scope, ids }
  }).pipe(Effect.provide(Layer.fresh(started(small))))

eachEngineLive("Changing the embedding model", (it) => {
  it.scoped(
    "uses the old vectors until all new ones are stored, then switches at once, and can switch back at once",
    () =>
      Effect.gen(function* () {
        const { scope } = yield* before(["restoring a backup", "renewing a passport"])
        yield* Effect.gen(function* () {
          yield* setTarget
          const whole = yield* search(scope, "restore backups")
          expect(whole.degraded).toBe(false)
          expect(whole.chunks[0]?.semantic).toBeGreaterThan(0)
          expect(yield* activeOf(scope)).toBe(small.profile)
          expect(yield* sweep).toBe(true)
          expect(yield* activeOf(scope)).toBe(small.profile)
          const again = yield* search(scope, "restore backups")
          expect(again).toEqual(whole)
          yield* work
          expect(yield* activeOf(scope)).toBe(large.profile)
          const moved = yield* search(scope, "restore backups")
          expect(moved.degraded).toBe(false)
          expect(moved.chunks[0]?.text).toBe("restoring a backup")
          expect(moved.chunks[0]?.semantic).not.toBe(whole.chunks[0]?.semantic)
          expect(yield* sweep).toBe(false)
          expect([yield* vectorsOf(small.profile), yield* vectorsOf(large.profile)]).toEqual([2, 2])
        }).pipe(Effect.provide(Layer.fresh(started(large, [small]))))
        // The variable is set back: the old vectors are still there, and nothing is embedded.
        let asked = 0
        const counted = {
          ...small,
          embedAll: (texts: ReadonlyArray<string>) => {
            asked += texts.length
            return small.embedAll(texts)
          }
        }
        yield* Effect.gen(function* () {
          yield* setTarget
          yield* sweep
          expect(yield* activeOf(scope)).toBe(small.profile)
          expect((yield* search(scope, "restore backups")).degraded).toBe(false)
          expect(asked).toBe(0)
        }).pipe(Effect.provide(Layer.fresh(started(counted, [large]))))
      })
  )

  it.scoped(
    "searches by words alone and reports it while no model can embed queries for the old vectors",
    () =>
      Effect.gen(function* () {
        const { scope } = yield* before(["restoring a backup"])
        yield* Effect.gen(function* () {
          yield* setTarget
          const found = yield* search(scope, "backup")
          expect(found.degraded).toBe(true)
          expect(found.chunks.map(({ semantic, text }) => [semantic, text])).toEqual([
            [0, "restoring a backup"]
          ])
          yield* sweep
          yield* work
          expect((yield* search(scope, "backup")).degraded).toBe(false)
        }).pipe(Effect.provide(Layer.fresh(started(large))))
      })
  )

  it.scoped("loses nothing while sources are read at the same time", () =>
    Effect.gen(function* () {
      const { ids, scope } = yield* before(["restoring a backup", "renewing a passport", "baking bread"])
      yield* Effect.gen(function* () {
        yield* setTarget
        const writers = yield* Effect.fork(
          Effect.forEach(
            ids,
            (id, place) =>
              Effect.gen(function* () {
                for (let round = 0; round < 4; round++) {
                  yield* ingest(scope, id, [
                    page(`backup number ${round} of ${place}`),
                    page("restoring a backup")
                  ])
                  yield* embed(id)
                }
              }),
            { discard: true }
          )
        )
        const degraded = yield* Ref.make(0)
        const reader = yield* Effect.fork(
          search(scope, "backup").pipe(
            Effect.tap(({ chunks, degraded: words }) =>
              words || chunks.length === 0 ? Ref.update(degraded, (count) => count + 1) : Effect.void
            ),
            Effect.zipRight(Effect.sleep("5 millis")),
            Effect.forever
          )
        )
        for (let round = 0; round < 5; round++) {
          yield* sweep
          yield* work
        }
        yield* Fiber.join(writers)
        yield* sweep
        yield* work
        yield* sweep
        yield* Fiber.interrupt(reader)
        expect(yield* activeOf(scope)).toBe(large.profile)
        expect(yield* vectorsOf(large.profile)).toBe(6)
        expect(yield* Ref.get(degraded)).toBe(0)
      }).pipe(Effect.provide(Layer.fresh(started(large, [small]))))
    })
  )

  it.scoped("continues after a restart, and a process with the old model does not undo it", () =>
    Effect.gen(function* () {
      const { scope } = yield* before(["one", "two", "three"])
      yield* Effect.gen(function* () {
        yield* setTarget
        yield* sweep
        const sql = yield* SqlClient.SqlClient
        const [first] = yield* sql<{ source: SourceId }>`
          select payload ->> 'sourceId' as source from queue_jobs where queue = 'embedding' limit 1`
        if (first !== undefined) yield* embed(first.source)
        expect(yield* vectorsOf(large.profile)).toBe(1)
        // Whatever was queued is lost with the queue.
        yield* sql`delete from queue_jobs`
      }).pipe(Effect.provide(Layer.fresh(started(large, [small]))))
      yield* sweep.pipe(Effect.provide(Layer.fresh(started(small, [large]))))
      expect(yield* activeOf(scope)).toBe(small.profile)
      yield* Effect.gen(function* () {
        yield* setTarget
        yield* sweep
        yield* work
        expect(yield* activeOf(scope)).toBe(large.profile)
        expect(yield* vectorsOf(large.profile)).toBe(3)
      }).pipe(Effect.provide(Layer.fresh(started(large, [small]))))
    })
  )

  it.scoped("removes the old vectors after a week, and not before", () =>
    Effect.gen(function* () {
      const { scope } = yield* before(["one"])
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { removeUnused } = yield* EmbeddingProfiles
        yield* setTarget
        yield* sweep
        yield* work
        yield* removeUnused
        expect(yield* vectorsOf(small.profile)).toBe(1)
        yield* sql`update agent_stats set profile_since = now() - interval '8 days' where agent_id = ${scope.agentId}`
        yield* removeUnused
        expect([yield* vectorsOf(small.profile), yield* vectorsOf(large.profile)]).toEqual([0, 1])
      }).pipe(Effect.provide(Layer.fresh(started(large, [small]))))
    })
  )
})

eachEngineLive("Embedding jobs", (it) => {
  const pages = Array.from({ length: 10 }, (_, place) => page(`page number ${place}`))
  const limited = (allowed: number) => {
    let asked = 0
    const embedder: EmbedderService = {
      ...small,
      maxBatch: 1,
      embedAll: (texts) =>
        Effect.suspend(() =>
          ++asked > allowed
            ? new EmbedderError({ message: "Slow down.", retryable: true, retryAfter: Duration.seconds(40) })
            : small.embedAll(texts)
        )
    }
    return embedder
  }

  it.scoped(
    "a provider's pause costs no attempt of a job that made progress, and the rest is done later",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const id = yield* source(scope)
        yield* ingest(scope, id, pages)
        yield* embed(id)
        const half = yield* state(scope, id)
        expect(half).toMatchObject({ profile: small.profile, chunks: 10, error: "Slow down." })
        expect(half?.embedded).toBeGreaterThan(0)
        const [counts] = (yield* (yield* JobQueue).counts).filter(({ name }) => name === "embedding")
        expect(counts).toMatchObject({ delayed: 1, waiting: 0 })
        yield* Effect.gen(function* () {
          yield* embed(id)
          expect(yield* state(scope, id)).toEqual({
            profile: small.profile,
            chunks: 10,
            embedded: 10,
            error: null
          })
        }).pipe(Effect.provide(Layer.fresh(started(small))))
      }).pipe(Effect.provide(Layer.fresh(started(limited(3)))))
  )

  /** A provider that takes texts of at most `maxLength`, and none with `banned` in it. */
  const picky = (maxLength: number, banned: string) => {
    const asked: Array<ReadonlyArray<string>> = []
    const refused = (text: string) => text.length > maxLength || text.includes(banned)
    const embedder: EmbedderService = {
      ...small,
      maxBatch: 8,
      embedAll: (texts) =>
        Effect.suspend(() => {
          asked.push(texts)
          return texts.some(refused)
            ? new EmbedderError({ message: "Refused.", retryable: false, dependsOnInput: true })
            : small.embedAll(texts)
        })
    }
    return { asked, embedder }
  }

  it.scoped("a text that is too long for the model is shortened, and does not block others", () => {
    const { embedder } = picky(500, "nothing of this kind")
    return Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      yield* ingest(scope, id, [...pages, page(`long ${"word ".repeat(300)}`), ...pages])
      yield* embed(id)
      expect(yield* state(scope, id)).toMatchObject({ chunks: 21, embedded: 21, error: null })
      const { chunks } = yield* search(scope, "long word")
      expect(chunks[0]?.text.length).toBeGreaterThan(500)
    }).pipe(Effect.provide(Layer.fresh(started(embedder))))
  })

  it.scoped("a text that is refused at any length does not block others, and is reported", () => {
    const { asked, embedder } = picky(10_000, "number 3")
    return Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      yield* ingest(scope, id, pages)
      expect(yield* Effect.flip(embed(id))).toMatchObject({ fatal: true, message: "Refused." })
      expect(yield* state(scope, id)).toMatchObject({ chunks: 10, embedded: 9, error: "Refused." })
      asked.length = 0
      yield* Effect.flip(embed(id))
      expect(asked).toHaveLength(1)
    }).pipe(Effect.provide(Layer.fresh(started(embedder))))
  })

  it.scoped("many adjacent refused texts do not block others", () => {
    const { embedder } = picky(10_000, "number 3")
    return Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      const refused = Array.from({ length: 12 }, (_, place) =>
        page(`number 3 of ${place} ${"word ".repeat(150)}`)
      )
      yield* ingest(scope, id, [
        ...refused,
        ...Array.from({ length: 60 }, (_, place) => page(`page ${place}`))
      ])
      expect(yield* Effect.flip(embed(id))).toMatchObject({ fatal: true, message: "Refused." })
      expect(yield* state(scope, id)).toMatchObject({ chunks: 72, embedded: 60 })
    }).pipe(Effect.provide(Layer.fresh(started({ ...embedder, maxBatch: 128 }))))
  })

  it.scoped(
    "texts that are all too long, in batches that are sent at the same time, are all shortened",
    () => {
      const { embedder } = picky(500, "nothing of this kind")
      return Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const id = yield* source(scope)
        yield* ingest(
          scope,
          id,
          Array.from({ length: 400 }, (_, place) => page(`${place} ${"word ".repeat(300)}`))
        )
        yield* embed(id)
        expect(yield* state(scope, id)).toMatchObject({ chunks: 400, embedded: 400, error: null })
      }).pipe(Effect.provide(Layer.fresh(started({ ...embedder, maxBatch: 128 }))))
    }
  )

  it.scoped("a provider that refuses every text is not called for each of them", () => {
    const { asked, embedder } = picky(10_000, "")
    return Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      yield* ingest(
        scope,
        id,
        Array.from({ length: 100 }, (_, place) => page(`page number ${place}`))
      )
      expect(yield* Effect.flip(embed(id))).toMatchObject({ fatal: true, message: "Refused." })
      expect(asked.length).toBeLessThan(50)
    }).pipe(Effect.provide(Layer.fresh(started(embedder))))
  })

  it.scoped("a job that fails, or whose workers die, is reported at the source and retried", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      yield* ingest(scope, id, pages)
      yield* setTarget
      expect(Exit.isFailure(yield* Effect.exit(embed(id)))).toBe(true)
      expect(yield* state(scope, id)).toMatchObject({ error: "An unexpected error stopped the job." })
      yield* (yield* Embed).failAbandoned(job(scope.tenantId, id, true))
      expect((yield* state(scope, id))?.error).toMatch(/^The worker stopped/u)
      expect(yield* sweep).toBe(false)
      yield* sql`update embedding_failures set failed_at = now() - interval '2 hours'`
      expect(yield* sweep).toBe(true)
    }).pipe(Effect.provide(Layer.fresh(started({ ...small, embedAll: () => Effect.die("broken") }))))
  )

  it.scoped("a refusal ends the job, is reported at the source, and is retried after an hour", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      yield* ingest(scope, id, pages)
      yield* setTarget
      const failure = yield* Effect.flip(embed(id))
      expect(failure).toMatchObject({ fatal: true, message: "The key is refused." })
      expect(yield* state(scope, id)).toMatchObject({
        chunks: 10,
        embedded: 0,
        error: "The key is refused."
      })
      expect((yield* search(scope, "page number 3")).chunks.length).toBeGreaterThan(0)
      expect(yield* sweep).toBe(false)
      yield* sql`update embedding_failures set failed_at = now() - interval '2 hours'`
      expect(yield* sweep).toBe(true)
      // It has a job now.
      expect(yield* sweep).toBe(false)
      expect(yield* sql`select owner from queue_jobs`).toEqual([{ owner: scope.tenantId }])
    }).pipe(
      Effect.provide(
        Layer.fresh(
          started({
            ...small,
            embedAll: () => new EmbedderError({ message: "The key is refused.", retryable: false })
          })
        )
      )
    )
  )
})
