/** What only Redis adds to the suite of JobQueue.test.ts: it brings jobs at once, and it can be lost. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as PgClient from "@effect/sql-pg/PgClient"
import { expect, layer } from "@effect/vitest"
import { connect } from "../../src/app/RedisBackends.ts"
import { JobQueue, type QueueJob } from "../../src/capabilities/JobQueue.ts"
import { layerRedis } from "../../src/capabilities/JobQueue/Redis.ts"
import { binaries } from "../PostgresServer.ts"
import { startRedis, withRedis } from "../RedisServer.ts"
import { reset, TestServer } from "../TestDatabase.ts"
import { restoreIt } from "../setup.ts"

const server = Effect.acquireRelease(
  Effect.promise(() => startRedis()),
  ({ stop }) => Effect.promise(stop)
)

/** With the documented policies, so that sweeps are five seconds apart. */
const processOn = (url: string) =>
  Effect.gen(function* () {
    const redis = yield* connect(Redacted.make(url))
    const built = yield* Layer.build(Layer.fresh(layerRedis({ redis })))
    return { queue: Context.get(built, JobQueue), redis }
  })

const recorder = Effect.map(Queue.unbounded<number>(), (seen) => ({
  seen,
  handler: (job: QueueJob) => Effect.asVoid(Queue.offer(seen, Number(job.payload["n"]))),
  next: Effect.timeout(Queue.take(seen), "20 seconds")
}))

const unfinished = Effect.flatMap(
  PgClient.PgClient,
  (sql) => sql`select id from queue_jobs where state <> 'completed'`
)
const allDone = unfinished.pipe(
  Effect.repeat({ until: (left) => left.length === 0, schedule: Schedule.spaced("50 millis") }),
  Effect.timeout("40 seconds")
)

const numbers = (length: number, from = 0) => Array.from({ length }, (_, n) => ({ payload: { n: n + from } }))

const there = (read: () => Promise<number>, count: number) =>
  Effect.promise(read).pipe(
    Effect.repeat({ until: (found) => found === count, schedule: Schedule.spaced("10 millis") }),
    Effect.timeout("10 seconds")
  )

const suite = () =>
  layer(TestServer, { timeout: "60 seconds", excludeTestServices: true })("Redis", (it) => {
    it.scoped("brings a job to a worker of another process at once, not by a sweep", () =>
      Effect.gen(function* () {
        yield* reset
        const { url } = yield* server
        const here = yield* processOn(url)
        const there = yield* processOn(url)
        const { handler, next } = yield* recorder
        yield* there.queue.work("ingestion", 1, handler)
        yield* here.queue.enqueue("ingestion", { n: 0 })
        yield* next
        yield* allDone
        for (let n = 1; n <= 10; n++) {
          yield* here.queue.enqueue("ingestion", { n })
          const [waited] = yield* Effect.timed(next)
          expect(Duration.toMillis(waited)).toBeLessThan(1_000)
        }
        yield* here.queue.enqueue("ingestion", { n: 11 }, { delay: "300 millis" })
        const [waited] = yield* Effect.timed(next)
        expect(Duration.toMillis(waited)).toBeLessThan(1_500)
      })
    )

    it.scoped("brings at once what was put in before the process heard of its own commits", () =>
      Effect.gen(function* () {
        yield* reset
        const { url } = yield* server
        const sql = yield* PgClient.PgClient
        const hearing = yield* Effect.makeLatch(false)
        const listen = (channel: string) => Stream.unwrap(Effect.as(hearing.await, sql.listen(channel)))
        const slow = new Proxy(sql, {
          get: (target, name) => (name === "listen" ? listen : Reflect.get(target, name))
        })
        const { queue } = yield* Effect.provideService(processOn(url), PgClient.PgClient, slow)
        const { handler, next } = yield* recorder
        yield* queue.work("ingestion", 1, handler)
        // The worker has looked, and would by itself not look again for five seconds.
        yield* queue.enqueue("ingestion", { n: 0 })
        yield* next
        for (let n = 1; n <= 3; n++) {
          const [waited] = yield* Effect.timed(
            Effect.zipRight(
              sql.withTransaction(queue.enqueue("ingestion", { n })),
              n === 1 ? hearing.open : Effect.void
            ).pipe(Effect.zipRight(next))
          )
          expect(Duration.toMillis(waited)).toBeLessThan(1_500)
        }
      })
    )

    it.scoped("shares the jobs out among all processes", () =>
      Effect.gen(function* () {
        yield* reset
        const { url } = yield* server
        const one = yield* processOn(url)
        const two = yield* processOn(url)
        const first = yield* recorder
        const second = yield* recorder
        const slowly = (handler: (job: QueueJob) => Effect.Effect<void>) => (job: QueueJob) =>
          Effect.zipRight(handler(job), Effect.sleep("20 millis"))
        yield* one.queue.work("ingestion", 1, slowly(first.handler))
        yield* two.queue.work("ingestion", 1, slowly(second.handler))
        yield* one.queue.enqueueAll("ingestion", numbers(60))
        yield* allDone
        const [some, others] = [yield* Queue.takeAll(first.seen), yield* Queue.takeAll(second.seen)]
        expect([...some, ...others].sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n))
        expect(some.length).toBeGreaterThan(10)
        expect(others.length).toBeGreaterThan(10)
      })
    )

    it.scoped("is written no more tickets than may bring somebody, and all jobs are run", () =>
      Effect.gen(function* () {
        yield* reset
        const { url } = yield* server
        const { queue, redis } = yield* processOn(url)
        const { handler, seen } = yield* recorder
        const waiting = () => redis.llen("{spoke}:embedding:wait")
        // Until the process hears of its own commits.
        yield* Effect.repeat(queue.enqueue("embedding", { n: -1 }), {
          until: () => Effect.map(Effect.promise(waiting), (found) => found > 0),
          schedule: Schedule.spaced("100 millis")
        })
        yield* queue.enqueueAll("embedding", numbers(200))
        yield* there(waiting, 64)
        yield* queue.enqueueAll("embedding", numbers(200, 200))
        // What comes later is always written, and after what came before.
        yield* queue.enqueue("embedding", { n: 400 }, { delay: "1 second" })
        yield* there(() => redis.zcard("{spoke}:embedding:delayed"), 1)
        expect(yield* Effect.promise(waiting)).toBe(64)
        yield* queue.work("embedding", 4, handler)
        yield* allDone
        const run = [...(yield* Queue.takeAll(seen))].filter((n) => n >= 0)
        expect(run.sort((a, b) => a - b)).toEqual(Array.from({ length: 401 }, (_, n) => n))
      })
    )

    it.scoped(
      "hears at once of jobs whose statement was a transaction of its own, of others by its commit",
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* PgClient.PgClient
          const { url } = yield* server
          const { queue, redis } = yield* processOn(url)
          const alone = yield* queue.prepare("embedding", 3)
          expect(alone.news).toBeNull()
          expect(yield* Effect.promise(() => redis.llen("{spoke}:embedding:wait"))).toBe(0)
          yield* alone.inserted
          yield* there(() => redis.llen("{spoke}:embedding:wait"), 3)
          const within = yield* sql.withTransaction(
            Effect.tap(queue.prepare("embedding", 3), ({ inserted }) => inserted)
          )
          expect(within.news).toEqual({ channel: "queue_tickets", text: expect.any(String) })
          expect(yield* Effect.promise(() => redis.llen("{spoke}:embedding:wait"))).toBe(3)
        })
    )

    it.scoped("loses nothing when it is emptied in the middle of the load", () =>
      Effect.gen(function* () {
        yield* reset
        const { url } = yield* server
        const { queue, redis } = yield* processOn(url)
        const { handler, seen } = yield* recorder
        yield* queue.work("ingestion", 2, (job) => Effect.zipRight(handler(job), Effect.sleep("20 millis")))
        yield* queue.enqueueAll(
          "ingestion",
          numbers(90).map((job, n) => ({ ...job, options: { serialKey: `key ${n % 7}` } }))
        )
        yield* queue.enqueue("ingestion", { n: 90 }, { delay: "1 second" })
        yield* Effect.promise(() => redis.flushall())
        yield* queue.enqueueAll("ingestion", numbers(10, 91))
        yield* Effect.promise(() => redis.flushall())
        yield* allDone
        expect([...(yield* Queue.takeAll(seen))].sort((a, b) => a - b)).toEqual(
          Array.from({ length: 101 }, (_, n) => n)
        )
      })
    )

    it.scoped(
      "can be gone: jobs are accepted and run without it, and at once again when it is back",
      () =>
        Effect.gen(function* () {
          yield* reset
          const { port, stop, url } = yield* server
          const { queue, redis } = yield* processOn(url)
          const { handler, next, seen } = yield* recorder
          yield* queue.work("ingestion", 2, handler)
          yield* Effect.promise(stop)
          yield* queue.enqueueAll("ingestion", numbers(30))
          yield* allDone
          expect(yield* Queue.size(seen)).toBe(30)
          yield* Queue.takeAll(seen)
          yield* Effect.acquireRelease(
            Effect.promise(() => startRedis(port)),
            (again) => Effect.promise(again.stop)
          )
          yield* Effect.promise(() => redis.ping().catch(() => "")).pipe(
            Effect.repeat({ until: (answer) => answer === "PONG", schedule: Schedule.spaced("50 millis") }),
            Effect.timeout("10 seconds")
          )
          // The worker's own connection needs a moment more.
          yield* queue.enqueue("ingestion", { n: 30 })
          yield* next
          yield* queue.enqueue("ingestion", { n: 31 })
          const [waited] = yield* Effect.timed(next)
          expect(Duration.toMillis(waited)).toBeLessThan(2_000)
        }),
      60_000
    )

    restoreIt()
  })

withRedis("Redis", () => {
  if (binaries !== undefined) suite()
})
