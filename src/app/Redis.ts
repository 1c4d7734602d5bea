/**
 * Services that processes share. Jobs are always in the database. Dedupe keys, rate limits and signals are in Redis
 * when REDIS_URL is set. The Redis client is loaded only then, because loading it slows down the start.
 */
import type { Cluster, Redis } from "ioredis"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as DedupeSql from "../capabilities/DedupeStore/Sql.ts"
import { singleProcessPolicies } from "../capabilities/JobQueue.ts"
import * as QueueTable from "../capabilities/JobQueue/Table.ts"
import * as RateMemory from "../capabilities/RateLimiter/Memory.ts"
import * as RateSql from "../capabilities/RateLimiter/Sql.ts"
import * as RealtimeMemory from "../capabilities/Realtime/Memory.ts"
import * as RealtimePostgres from "../capabilities/Realtime/Postgres.ts"
import type { Settings } from "./config/Config.ts"

/** The connection for short commands; null when Redis is not configured. */
export class RedisConnection extends Context.Tag("app/RedisConnection")<
  RedisConnection,
  Redis | Cluster | null
>() {}

/** Fails when Redis does not answer in time. */
export const ping = (redis: Redis | Cluster) => Effect.tryPromise(() => redis.ping())

const inDatabase = (settings: Pick<Settings, "database">) =>
  Layer.mergeAll(
    DedupeSql.layerSql,
    // An embedded database has one process.
    settings.database === null ? RateMemory.layerMemory : RateSql.layerSql,
    settings.database === null ? RealtimeMemory.layerMemory : RealtimePostgres.layerPostgres,
    Layer.succeed(RedisConnection, null)
  )

const inRedis = (url: Redacted.Redacted) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const { backends, connect } = yield* Effect.promise(() => import("./RedisBackends.ts"))
      const redis = yield* connect(url)
      return Layer.merge(backends(redis), Layer.succeed(RedisConnection, redis))
    })
  )

const jobs = ({ database }: Pick<Settings, "database">) =>
  database === null ? QueueTable.layerTableWith({ policies: singleProcessPolicies }) : QueueTable.layerTable

/** `JobQueue`, `DedupeStore`, `RateLimiter`, `Realtime`, and the connection that the last three share. */
export const layer = (settings: Pick<Settings, "database" | "redis">) =>
  Layer.merge(jobs(settings), settings.redis === null ? inDatabase(settings) : inRedis(settings.redis))
