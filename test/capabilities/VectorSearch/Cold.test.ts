/** A search in process right after a start, when no agent's chunks are in memory. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Pg from "pg"
import { Embedder, EmbedderError, type EmbedderService } from "../../../src/capabilities/Embedder.ts"
import { type SearchQuery, VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerInProcess, type LayerOptions } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import type { AgentScope, ReadScope } from "../../../src/domain/accounts/Access.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset, serverUrl } from "../../TestDatabase.ts"
import { corpus, known, stores } from "./Knowledge.ts"

const hashing = makeHashing({ lexicalWeight: 0.5 })

const started = (options: Partial<LayerOptions> = {}, embedder: EmbedderService = hashing) =>
  Layer.provideMerge(
    Layer.merge(layerInProcess({ maxBytes: 1e8, wordsFirstAbove: 10, ...options }), stores),
    Layer.succeed(Embedder, embedder)
  )

const query = { text: "rotate the secret token of the webhook", topK: 5, minScore: 0 }

const search = (scope: ReadScope, more: Partial<SearchQuery> = {}) =>
  Effect.flatMap(VectorSearch, (searcher) => searcher.search(scope, { ...query, ...more }))

const warm = Effect.flatMap(VectorSearch, (searcher) => searcher.warm)

/** Until what `effect` says is true. */
const eventually = <E, R>(effect: Effect.Effect<boolean, E, R>) =>
  effect.pipe(
    Effect.repeat({ until: (done) => done, schedule: Schedule.spaced("10 millis") }),
    Effect.timeout("30 seconds")
  )

/** An agent of 200 chunks. */
const written = Effect.gen(function* () {
  yield* reset
  const scope = yield* Fixtures.agent()
  yield* known(scope, corpus(10, 20))
  return scope
}).pipe(Effect.provide(started()))

/** As its turns would have been counted. */
const busy = ({ agentId }: AgentScope, turns: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`insert into agent_usage (tenant_id, agent_id, period_start, turns)
        select tenant_id, id, date_trunc('month', now()), ${turns} from agents where id = ${agentId}`
  )

/** Keeps everybody from reading vectors until the scope closes. */
const noVectors = Effect.acquireRelease(
  Effect.flatMap(serverUrl, (url) =>
    Effect.promise(async () => {
      const client = new Pg.Client({ connectionString: Redacted.value(url) })
      await client.connect()
      await client.query("begin; lock table chunk_embeddings in access exclusive mode")
      return client
    })
  ),
  (client) => Effect.promise(() => client.end())
)

eachEngineLive("A search of an agent that is not in memory", (it, engine) => {
  it.scoped("ranks by words as memory does, and by meaning once it has been read", () =>
    Effect.gen(function* () {
      const scope = yield* written
      const inMemory = yield* Effect.provide(search(scope), started({ wordsFirstAbove: Infinity }))
      expect(inMemory.degraded).toBe(false)
      yield* Effect.gen(function* () {
        // The first may have been read in time; whatever comes after it is, when it has been.
        yield* search(scope)
        yield* eventually(Effect.map(search(scope), ({ degraded }) => !degraded))
        expect((yield* search(scope)).chunks).toEqual(inMemory.chunks)
      }).pipe(Effect.provide(started()))
    })
  )

  it.scoped("finds the embedder prepared: the server is warm then, also if it could not be", () =>
    Effect.gen(function* () {
      yield* written
      const ends = [
        Effect.void,
        Effect.fail(new EmbedderError({ message: "The model cannot be read.", retryable: false }))
      ]
      for (const end of ends) {
        const mayEnd = yield* Deferred.make<void, EmbedderError>()
        const begun = yield* Deferred.make<void>()
        const prepare = Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(mayEnd))
        yield* Effect.gen(function* () {
          yield* Deferred.await(begun)
          expect(yield* warm).toBe(false)
          yield* Deferred.complete(mayEnd, end)
          yield* eventually(warm)
        }).pipe(Effect.provide(started({ prepareEmbedder: true }, { ...hashing, prepare })))
      }
    })
  )

  it.scoped(
    "finds the embedder unprepared where no agent is searched with it, or no other process answers",
    () =>
      Effect.gen(function* () {
        yield* written
        const prepared = yield* Ref.make(false)
        const unprepared = { ...hashing, prepare: Ref.set(prepared, true) }
        const prepareEmbedder = true
        yield* Effect.provide(eventually(warm), started({}, unprepared))
        yield* Effect.provide(
          eventually(warm),
          started({ prepareEmbedder }, { ...unprepared, profile: "other/128" })
        )
        yield* reset
        yield* Effect.provide(eventually(warm), started({ prepareEmbedder }, unprepared))
        expect(yield* Ref.get(prepared)).toBe(false)
      })
  )

  if (engine === "embedded") return

  it.scoped("is answered by words while its vectors cannot be read, with the scores that words have", () =>
    Effect.gen(function* () {
      const scope = yield* written
      const inMemory = yield* Effect.provide(
        search(scope, { topK: 200 }),
        started({ wordsFirstAbove: Infinity })
      )
      const lexical = new Map(inMemory.chunks.map((chunk) => [chunk.id, chunk.lexical]))
      yield* Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* noVectors
            const all = Effect.forEach(Array.from({ length: 20 }), () => search(scope), {
              concurrency: "unbounded"
            })
            const answers = yield* Effect.timeout(all, "20 seconds")
            const best = [...lexical.values()].toSorted((one, other) => other - one).slice(0, 5)
            for (const { chunks, degraded } of answers) {
              expect(degraded).toBe(true)
              expect(chunks.map(({ score }) => score)).toEqual(best.map((score) => expect.closeTo(score, 5)))
              for (const { id, score } of chunks) expect(score).toBeCloseTo(lexical.get(id) ?? 0, 5)
            }
          })
        )
        yield* eventually(Effect.map(search(scope), ({ degraded }) => !degraded))
      }).pipe(Effect.provide(started()))
    })
  )

  it.scoped("needs no search to be read, when it is one of the busiest: the server is warm then", () =>
    Effect.gen(function* () {
      const scope = yield* written
      yield* busy(scope, 12)
      yield* Effect.gen(function* () {
        yield* eventually(warm)
        expect((yield* search(scope)).degraded).toBe(false)
      }).pipe(Effect.provide(started()))
    })
  )

  it.scoped("keeps the server from being called warm no longer than it is given", () =>
    Effect.gen(function* () {
      const scope = yield* written
      yield* busy(scope, 12)
      yield* noVectors
      yield* Effect.gen(function* () {
        yield* Effect.sleep("300 millis")
        expect(yield* warm).toBe(false)
      }).pipe(Effect.provide(started({ warmUpTimeout: "1 hour" })))
      yield* Effect.provide(eventually(warm), started({ warmUpTimeout: Duration.millis(100) }))
    })
  )
})
