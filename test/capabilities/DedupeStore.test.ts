import { expect, layer, type Vitest } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "@effect/sql/SqlClient"
import * as RedisBackends from "../../src/app/RedisBackends.ts"
import { DedupeStore, type DedupeStoreError } from "../../src/capabilities/DedupeStore.ts"
import * as InRedis from "../../src/capabilities/DedupeStore/Redis.ts"
import * as InSql from "../../src/capabilities/DedupeStore/Sql.ts"
import { redisUrl, startRedis, withRedis } from "../servers/RedisServer.ts"
import { eachEngineLive } from "../TestDatabase.ts"
import { restoreIt } from "../setup.ts"
import * as Redacted from "effect/Redacted"

const connect = (url: Redacted.Redacted) => Effect.orDie(RedisBackends.connect(url))

const overRedis = Layer.unwrapScoped(
  Effect.map(Effect.flatMap(redisUrl, connect), (redis) => InRedis.layerRedis(redis))
)

const suite = <R>(it: Vitest.MethodsNonLive<R, true>, backend: Layer.Layer<DedupeStore, never, R>) => {
  const store = Effect.map(Layer.build(Layer.fresh(backend)), Context.get(DedupeStore))
  const fresh = Effect.sync(() => `outbound:${crypto.randomUUID()}`)

  it.scoped("lets the first claim of a key win, and every repeat lose, also at once", () =>
    Effect.gen(function* () {
      const here = yield* store
      const there = yield* store
      const key = yield* fresh
      const claims = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? here : there).claim(key, "7 days"))
      const won = yield* Effect.all(claims, { concurrency: "unbounded" })
      expect(won.filter(Boolean)).toHaveLength(1)
      expect(yield* there.claim(key, "7 days")).toBe(false)
      expect(yield* here.claim(yield* fresh, "7 days")).toBe(true)
    })
  )

  it.scoped("holds a key for its time, which a repeat does not prolong", () =>
    Effect.gen(function* () {
      const { claim } = yield* store
      const key = yield* fresh
      expect(yield* claim(key, "400 millis")).toBe(true)
      expect(yield* claim(key, "7 days")).toBe(false)
      yield* claim(key, "7 days").pipe(
        Effect.repeat({ until: (claimed) => claimed, schedule: Schedule.spaced("20 millis") }),
        Effect.timeout("5 seconds")
      )
      expect(yield* claim(key, "7 days")).toBe(false)
    })
  )

  it.scoped("gives a key back", () =>
    Effect.gen(function* () {
      const { claim, release } = yield* store
      const key = yield* fresh
      yield* release(key)
      yield* claim(key, "7 days")
      yield* release(key)
      expect(yield* claim(key, "7 days")).toBe(true)
    })
  )
}

eachEngineLive("Dedupe keys in the database", (it) => {
  suite(it, InSql.layerSql)

  it.scoped("are claimed only when the caller's transaction commits", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { claim } = Context.get(yield* Layer.build(InSql.layerSql), DedupeStore)
      yield* claim("outbound:undone", "7 days").pipe(
        Effect.zipRight(Effect.fail("rolled back")),
        sql.withTransaction,
        Effect.ignore
      )
      expect(yield* claim("outbound:undone", "7 days")).toBe(true)
    })
  )
})

withRedis("Dedupe keys in Redis", () =>
  layer(Layer.empty, { excludeTestServices: true })("Dedupe keys in Redis", (it) => {
    suite(it, overRedis)

    it.scoped("say so when they cannot be reached, without the cause", () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(() => startRedis())
        const redis = yield* connect(Redacted.make(server.url))
        const { claim } = Context.get(yield* Layer.build(InRedis.layerRedis(redis)), DedupeStore)
        yield* Effect.promise(server.stop)
        const error: DedupeStoreError = yield* Effect.flip(claim("outbound:1", "7 days"))
        expect(error).toMatchObject({ _tag: "DedupeStoreError", message: "Dedupe keys cannot be reached." })
      })
    )
    restoreIt()
  })
)
