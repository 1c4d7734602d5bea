/** State that processes share, on a Redis cluster of three: the same contract as on a single server. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { Cluster } from "ioredis"
import { afterAll, beforeAll } from "vitest"
import { layer as layerOf, RedisConnection } from "../../src/app/Redis.ts"
import { DedupeStore } from "../../src/capabilities/DedupeStore.ts"
import { JobQueue } from "../../src/capabilities/JobQueue.ts"
import { Realtime } from "../../src/capabilities/Realtime.ts"
import { ConversationId } from "../../src/domain/Ids.ts"
import { startCluster } from "../servers/RedisCluster.ts"
import { withRedis } from "../servers/RedisServer.ts"
import { reset, TestDatabase } from "../TestDatabase.ts"
import { restoreIt } from "../setup.ts"

const conversationId = ConversationId.make("cnv_1")

withRedis("A cluster of three Redis servers", () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>
  beforeAll(async () => {
    cluster = await startCluster()
  }, 60_000)
  afterAll(() => cluster.stop())

  const processOn = (url: string) =>
    Effect.gen(function* () {
      const built = yield* Layer.build(Layer.fresh(layerOf({ database: null, redis: Redacted.make(url) })))
      expect(Context.get(built, RedisConnection)).toBeInstanceOf(Cluster)
      return {
        queue: Context.get(built, JobQueue),
        dedupe: Context.get(built, DedupeStore),
        realtime: Context.get(built, Realtime)
      }
    })

  layer(TestDatabase, { timeout: "60 seconds", excludeTestServices: true })("behind REDIS_URL", (it) => {
    it.scoped("hands every job to one worker of all processes", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* PgClient.PgClient
        const one = yield* processOn(cluster.url)
        const two = yield* processOn(cluster.seed)
        const seen = yield* Queue.unbounded<number>()
        const handler = ({ payload }: { readonly payload: Readonly<Record<string, unknown>> }) =>
          Effect.asVoid(Queue.offer(seen, Number(payload["n"])))
        yield* one.queue.work("ingestion", 2, handler)
        yield* two.queue.work("ingestion", 2, handler)
        const numbers = Array.from({ length: 60 }, (_, n) => n)
        for (const n of numbers) yield* (n % 2 === 0 ? one : two).queue.enqueue("ingestion", { n })
        yield* two.queue.enqueue("ingestion", { n: 60 }, { delay: "300 millis" })
        const heard = yield* Effect.timeout(Queue.takeN(seen, 61), "40 seconds")
        expect([...heard].sort((a, b) => a - b)).toEqual([...numbers, 60])
        yield* sql`select id from queue_jobs where state <> 'completed'`.pipe(
          Effect.repeat({ until: (left) => left.length === 0, schedule: Schedule.spaced("50 millis") }),
          Effect.timeout("20 seconds")
        )
        expect(yield* Queue.size(seen)).toBe(0)
      })
    )

    it.scoped("lets one of all claim a key", () =>
      Effect.gen(function* () {
        const one = yield* processOn(cluster.url)
        const two = yield* processOn(cluster.seed)
        const claims = yield* Effect.all(
          Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : two).dedupe.claim("cluster", "1 minute")),
          { concurrency: "unbounded" }
        )
        expect(claims.filter((claimed) => claimed)).toHaveLength(1)
        expect(yield* two.dedupe.claim("cluster", "1 minute")).toBe(false)
        yield* one.dedupe.release("cluster")
        expect(yield* two.dedupe.claim("cluster", "1 minute")).toBe(true)
      })
    )

    it.scoped("tells the other processes of changes", () =>
      Effect.gen(function* () {
        const one = yield* processOn(cluster.url)
        const two = yield* processOn(cluster.seed)
        const heard = yield* two.realtime.subscribe(conversationId)
        const typing = { _tag: "Typing", conversationId } as const
        // Until the subscription stands.
        const told = yield* Effect.raceFirst(
          Effect.zipRight(
            Effect.repeat(one.realtime.publish(typing), Schedule.spaced("100 millis")),
            Effect.never
          ),
          Effect.repeat(Queue.take(heard), { until: ({ _tag }) => _tag === "Typing" })
        ).pipe(Effect.timeout("20 seconds"))
        expect(told).toEqual(typing)
      })
    )
    restoreIt()
  })
})
