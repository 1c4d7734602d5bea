/**
 * What processes share, in Redis where REDIS_URL names one: the hand-out of jobs, dedupe keys, and word of changes. Its
 * clients are loaded only then: they would cost every other start a good part of its time.
 */
import type { Cluster, Redis } from "ioredis"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as DedupeSql from "../capabilities/DedupeStore/Sql.ts"
import * as QueueTable from "../capabilities/JobQueue/Table.ts"
import * as RateMemory from "../capabilities/RateLimiter/Memory.ts"
import * as RateSql from "../capabilities/RateLimiter/Sql.ts"
import * as RealtimeMemory from "../capabilities/Realtime/Memory.ts"
import * as RealtimePostgres from "../capabilities/Realtime/Postgres.ts"
import type { Settings } from "./Config.ts"

/** For short commands; null where none is configured. */
export class RedisConnection extends Context.Tag("app/RedisConnection")<
  RedisConnection,
  Redis | Cluster | null
>() {}

/** Fails when Redis does not answer in time. */
export const ping = (redis: Redis | Cluster) => Effect.tryPromise(() => redis.ping())

const inDatabase = (settings: Settings) =>
  Layer.mergeAll(
    QueueTable.layerTable,
    DedupeSql.layerSql,
    // An embedded store has one process.
    settings.database === null ? RateMemory.layerMemory : RateSql.layerSql,
    settings.database === null ? RealtimeMemory.layerMemory : RealtimePostgres.layerPostgres,
    Layer.succeed(RedisConnection, null)
  )

/** `JobQueue`, `DedupeStore`, `RateLimiter`, `Realtime`, and the connection they have in common. */
export const layer = (settings: Settings) => {
  const { redis: url } = settings
  if (url === null) return inDatabase(settings)
  return Layer.unwrapScoped(
    Effect.gen(function* () {
      const { backends, connect } = yield* Effect.promise(() => import("./RedisBackends.ts"))
      const redis = yield* connect(url)
      return Layer.merge(backends(redis), Layer.succeed(RedisConnection, redis))
    })
  )
}
