/**
 * Whether the server should get requests. It is ready once it listens and the database answers, and drains from the
 * first signal on. Every drain has the same steps in the same order.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { VectorSearch } from "../capabilities/VectorSearch.ts"
import * as QueueAges from "./telemetry/QueueAges.ts"
import * as Redis from "./Redis.ts"
import { Readiness } from "../http/system/Readiness.ts"

/** Reported, but not required for readiness: without Redis the service works, a little slower. */
const redisCheck = "redis"

/** Time-out for the database's answer. */
const databaseTimeout = "2 seconds"

export class Draining extends Effect.Service<Draining>()("app/Draining", {
  effect: Effect.gen(function* () {
    const started = yield* Ref.make(false)
    const latch = yield* Effect.makeLatch(false)
    return {
      begin: Effect.zipRight(Ref.set(started, true), latch.open),
      begun: Ref.get(started),
      /** Returns when the drain begins. */
      whenBegun: latch.await
    } as const
  })
}) {}

const oldestWaitingGauge = Metric.gauge("spoke_ingestion_oldest_waiting_seconds", {
  description: "How long the oldest reading of a source has waited for a worker"
})

/** The checks of `/readyz`. */
export const readiness = Layer.effect(
  Readiness,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const draining = yield* Draining
    const redis = yield* Redis.RedisConnection
    const search = yield* VectorSearch
    const succeeds = (query: Effect.Effect<unknown, unknown>) =>
      query.pipe(
        Effect.timeout(databaseTimeout),
        Effect.as(true),
        Effect.catchAllCause(() => Effect.succeed(false))
      )
    // A standby database answers, but refuses writes.
    const writable = Effect.filterOrFail(
      sql<{ readonly ok: boolean }>`select current_setting('transaction_read_only') = 'off' as ok`,
      ([row]) => row?.ok === true
    )
    // Reported, but not required for readiness: all processes share the queue.
    const oldestWaiting = sql<{ readonly seconds: number }>`/* every tenant: operator */
      select greatest(0, extract(epoch from clock_timestamp() - min(created_at)))::int as seconds
      from ingestion_jobs where status = 'QUEUED' having count(*) > 0`.pipe(
      Effect.map(([row]) => row?.seconds ?? null),
      Effect.tap((seconds) => Metric.set(oldestWaitingGauge, seconds ?? 0))
    )
    const ages = Effect.provideService(QueueAges.read, SqlClient.SqlClient, sql)
    return {
      check: Effect.gen(function* () {
        const checks = [
          { name: "accepting", ok: !(yield* draining.begun) },
          { name: "database", ok: yield* succeeds(writable) },
          { name: "queue", ok: yield* succeeds(sql`select 1 from queue_jobs limit 1`) },
          ...(redis === null ? [] : [{ name: redisCheck, ok: yield* succeeds(Redis.ping(redis)) }]),
          {
            name: "migrations",
            ok: yield* succeeds(sql`/* every tenant: operator */ select 1 from agent_usage limit 1`)
          },
          { name: "search", ok: yield* search.warm }
        ]
        const waiting = yield* Effect.option(Effect.timeout(oldestWaiting, databaseTimeout))
        const queues = yield* Effect.option(Effect.timeout(ages, databaseTimeout))
        return {
          ready: checks.every(({ name, ok }) => ok || name === redisCheck),
          checks,
          ...(Option.isSome(waiting) ? { queue: { oldestWaitingSeconds: waiting.value } } : {}),
          ...(Option.isSome(queues)
            ? {
                queues: queues.value.map(({ queue: name, seconds: oldestWaitingSeconds }) => ({
                  name,
                  oldestWaitingSeconds
                }))
              }
            : {})
        }
      })
    }
  })
)
