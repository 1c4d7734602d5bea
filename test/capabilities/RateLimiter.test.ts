/** One suite on every backend. Servers have clocks of their own, so nothing here depends on when it runs. */
import { expect, it as test, layer, type Vitest } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as Net from "node:net"
import { describe } from "vitest"
import * as RedisBackends from "../../src/app/RedisBackends.ts"
import { RateLimiter } from "../../src/capabilities/RateLimiter.ts"
import { layerMemory } from "../../src/capabilities/RateLimiter/Memory.ts"
import { layerRedis } from "../../src/capabilities/RateLimiter/Redis.ts"
import { layerSql } from "../../src/capabilities/RateLimiter/Sql.ts"
import { startCluster } from "../servers/RedisCluster.ts"
import { redisUrl, startRedis, withRedis } from "../servers/RedisServer.ts"
import { restoreIt } from "../setup.ts"
import { eachEngineLive, oncePerWorker } from "../TestDatabase.ts"

const connect = (url: Redacted.Redacted) => Effect.orDie(RedisBackends.connect(url))

const overRedis = Layer.unwrapScoped(
  Effect.map(Effect.flatMap(redisUrl, connect), (redis) => layerRedis(redis))
)

const suite = <R>(
  it: Vitest.MethodsNonLive<R, true>,
  backend: Layer.Layer<RateLimiter, never, R>,
  shared = true
) => {
  const limiter = Effect.map(Layer.build(Layer.fresh(backend)), Context.get(RateLimiter))
  const fresh = Effect.sync(() => `key_${crypto.randomUUID()}`)

  it.scoped("grants what the limit says, refuses what is more, and tells both how it stands", () =>
    Effect.gen(function* () {
      const { take } = yield* limiter
      const name = yield* fresh
      const limit = { requests: 3, window: 3_600 }
      for (const remaining of [2, 1, 0]) {
        const answer = yield* take(name, limit)
        expect(answer).toMatchObject({ granted: true, remaining })
        expect(answer.reset).toBeGreaterThan(3_500_000)
        expect(answer.reset).toBeLessThanOrEqual(3_660_000)
      }
      for (const _ of [1, 2]) {
        const refused = yield* take(name, limit)
        expect(refused).toMatchObject({ granted: false, remaining: 0 })
        expect(refused.reset).toBeLessThanOrEqual(3_660_000)
      }
      expect(yield* take(yield* fresh, limit)).toMatchObject({ granted: true, remaining: 2 })
      // A limit that was raised counts what was used before.
      expect(yield* take(name, { requests: 5, window: 3_600 })).toMatchObject({ granted: true, remaining: 1 })
    })
  )

  it.scoped("never grants more than the limit, however many ask at once", () =>
    Effect.gen(function* () {
      const here = yield* limiter
      const there = shared ? yield* limiter : here
      const name = yield* fresh
      const asked = Array.from({ length: 60 }, (_, n) =>
        (n % 2 === 0 ? here : there).take(name, { requests: 17, window: 3_600 })
      )
      const answers = yield* Effect.all(asked, { concurrency: "unbounded" })
      expect(answers.filter(({ granted }) => granted)).toHaveLength(17)
    })
  )

  it.scoped("gives requests back when their window is over, and not before", () =>
    Effect.gen(function* () {
      const { take } = yield* limiter
      const name = yield* fresh
      const limit = { requests: 4, window: 1 }
      const granted: Array<number> = []
      const ask = Effect.gen(function* () {
        const before = performance.now()
        const answer = yield* take(name, limit)
        if (answer.granted) granted.push(before, performance.now())
      })
      yield* ask.pipe(
        Effect.repeat({
          until: () => granted.length >= 2 * 9,
          schedule: Schedule.spaced("7 millis")
        }),
        Effect.timeout("20 seconds")
      )
      // From before the first of five to after the last of them lies more than a window, whatever the clock.
      const starts = granted.filter((_, n) => n % 2 === 0)
      const ends = granted.filter((_, n) => n % 2 === 1)
      for (const [n, start] of starts.slice(0, -4).entries()) {
        expect((ends[n + 4] ?? 0) - start).toBeGreaterThanOrEqual(990)
      }
    })
  )
}

describe("Requests counted in memory", () => {
  layer(Layer.empty, { excludeTestServices: true })("in memory", (it) => {
    suite(it, layerMemory, false)
    restoreIt()
  })

  test.scoped("are never more than the limit in any window, wherever it begins", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(
          FastCheck.integer({ min: 1, max: 8 }),
          FastCheck.integer({ min: 1, max: 90 }),
          FastCheck.array(FastCheck.integer({ min: 0, max: 30_000 }), { minLength: 1, maxLength: 80 }),
          (requests, window, pauses) =>
            Effect.gen(function* () {
              const { take } = Context.get(yield* Layer.build(Layer.fresh(layerMemory)), RateLimiter)
              const granted: Array<number> = []
              let now = 0
              for (const pause of pauses) {
                yield* TestClock.adjust(pause)
                now += pause
                const answer = yield* take("key_1", { requests, window })
                if (answer.granted) granted.push(now)
                else {
                  // What is told to wait is enough, and hardly more than what is needed.
                  yield* TestClock.adjust(answer.reset)
                  now += answer.reset
                  expect((yield* take("key_1", { requests, window })).granted).toBe(true)
                  expect(now - (granted.at(-requests) ?? 0)).toBeLessThanOrEqual(
                    (window * 1_000 * 61) / 60 + 1
                  )
                  granted.push(now)
                }
              }
              for (const [n, at] of granted.entries()) {
                const next = granted[n + requests]
                if (next !== undefined) expect(next - at).toBeGreaterThanOrEqual(window * 1_000)
              }
            }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext), Effect.runPromise)
        ),
        // Parts of 1,116.67 ms, where a division rounds a moment into the part before its own.
        { numRuns: 40, examples: [[1, 67, [1_117, 0, 0]]] }
      )
    )
  )
})

eachEngineLive("Requests counted in the database", (it) => {
  suite(it, layerSql)

  it.scoped("say so when the table cannot be reached", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { take } = Context.get(yield* Layer.build(layerSql), RateLimiter)
      yield* sql`alter table rate_counters rename to hidden`
      const error = yield* Effect.flip(take("key_1", { requests: 1, window: 1 })).pipe(
        Effect.ensuring(Effect.orDie(sql`alter table hidden rename to rate_counters`))
      )
      expect(error._tag).toBe("RateLimiterError")
    })
  )
})

withRedis("Requests counted in a cluster of Redis servers", () => {
  const overCluster = Layer.unwrapScoped(
    Effect.gen(function* () {
      const cluster = yield* Effect.promise(() => oncePerWorker("cluster of rate limits", startCluster))
      return layerRedis(yield* connect(Redacted.make(cluster.url)))
    })
  )
  layer(Layer.empty, { excludeTestServices: true })("in a cluster", (it) => {
    suite(it, overCluster)
    restoreIt()
  })
})

withRedis("Requests counted in Redis", () =>
  layer(Layer.empty, { excludeTestServices: true })("in Redis", (it) => {
    suite(it, overRedis)

    it.scoped("of the future do not use up a limit after the clock was set back", () =>
      Effect.gen(function* () {
        const redis = yield* Effect.flatMap(redisUrl, connect)
        const { take } = Context.get(yield* Layer.build(layerRedis(redis)), RateLimiter)
        const name = yield* Effect.sync(() => `key_${crypto.randomUUID()}`)
        const limit = { requests: 2, window: 3_600 }
        const part = Math.floor(Date.now() / 60_000)
        const count = (later: number) =>
          Effect.promise(() => redis.hset(`spoke:rate:{${name}:3600}`, String(part + later), 2))
        yield* count(30)
        expect((yield* take(name, limit)).granted).toBe(false)
        yield* Effect.promise(() => redis.del(`spoke:rate:{${name}:3600}`))
        yield* count(10_000)
        expect(yield* take(name, limit)).toMatchObject({ granted: true, remaining: 1 })
      })
    )

    it.scoped("say so when it cannot be reached", () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(() => startRedis())
        const redis = yield* connect(Redacted.make(server.url))
        const { take } = Context.get(yield* Layer.build(layerRedis(redis)), RateLimiter)
        yield* Effect.promise(server.stop)
        expect((yield* Effect.flip(take("key_1", { requests: 1, window: 1 })))._tag).toBe("RateLimiterError")
      })
    )

    it.scoped(
      "are counted by the new master when the old one has become its replica, and still answers",
      () =>
        Effect.gen(function* () {
          const started = Effect.acquireRelease(
            Effect.promise(() => startRedis()),
            ({ stop }) => Effect.promise(stop)
          )
          const old = yield* started
          const next = yield* started
          // As a name whose address changes with the failover.
          let master = old.port
          const relay = yield* Effect.acquireRelease(
            Effect.async<Net.Server>((resume) => {
              const server = Net.createServer((client) => {
                const upstream = Net.connect({ host: "127.0.0.1", port: master })
                for (const socket of [client, upstream]) socket.on("error", () => {})
                client.pipe(upstream).pipe(client)
              })
              server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
            }),
            (server) => Effect.sync(() => server.close())
          )
          const { port } = relay.address() as Net.AddressInfo
          const redis = yield* connect(Redacted.make(`redis://127.0.0.1:${port}`))
          const { take } = Context.get(yield* Layer.build(layerRedis(redis)), RateLimiter)
          const limit = { requests: 2, window: 60 }
          expect((yield* take("key_1", limit)).remaining).toBe(1)
          master = next.port
          yield* Effect.promise(() => redis.call("REPLICAOF", "127.0.0.1", String(next.port)))
          expect((yield* Effect.flip(take("key_1", limit)))._tag).toBe("RateLimiterError")
          const counted = yield* take("key_1", limit).pipe(
            Effect.retry(Schedule.intersect(Schedule.spaced("100 millis"), Schedule.recurs(100)))
          )
          expect(counted.granted).toBe(true)
        })
    )
    restoreIt()
  })
)
