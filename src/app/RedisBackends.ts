/** The connection to Redis, and the backends on it. Subscribers and blocking readers duplicate the connection. */
import type { Cluster, Redis, RedisOptions } from "ioredis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Runtime from "effect/Runtime"
import * as DedupeRedis from "../capabilities/DedupeStore/Redis.ts"
import * as RateRedis from "../capabilities/RateLimiter/Redis.ts"
import * as RealtimeRedis from "../capabilities/Realtime/Redis.ts"
import { optional } from "../domain/OptionalPackage.ts"
import { codeOf, isError } from "../domain/ThrownErrors.ts"
import { parseRedisAddress, type RedisAddress } from "./config/RedisAddress.ts"

const timeoutsMs = { connect: 5_000, command: 2_000, socket: 3_000, maxRetryDelay: 2_000 }

const retryStrategy = (times: number) => Math.min(times * 100, timeoutsMs.maxRetryDelay)

const options: RedisOptions = {
  connectTimeout: timeoutsMs.connect,
  commandTimeout: timeoutsMs.command,
  // Closes a connection whose answers do not come. The system would keep it for 15 minutes after its host was lost.
  socketTimeout: timeoutsMs.socket,
  // The client ignores the answer to this command, which may be the only one that says why the server refuses it.
  disableClientInfo: true,
  maxRetriesPerRequest: 1
}

/** Commands fail at once while Redis is unreachable: no caller waits, and no backlog builds up. */
const enableOfflineQueue = false

/**
 * True for the error of a replica: the server was the master before a failover, and may keep the connection open. A new
 * connection finds the present master.
 */
const reconnectOnError = ({ message }: Error) => /\bREADONLY\b/u.test(message)

type IoRedis = Pick<typeof import("ioredis"), "Cluster" | "Redis">

const openCluster = ({ Cluster }: IoRedis, { nodes, password, tls, username }: RedisAddress) =>
  new Cluster([...nodes], {
    enableOfflineQueue,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: timeoutsMs.command,
    redisOptions: {
      ...options,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(tls ? { tls: {} } : {})
    },
    // Certificates name hosts, so the nodes' announced host names are not resolved to addresses.
    ...(tls ? { dnsLookup: (address, found) => found(null, address) } : {})
  })

const open = (library: IoRedis, url: Redacted.Redacted): Redis | Cluster => {
  const address = Option.getOrNull(parseRedisAddress(Redacted.value(url)))
  return address?.cluster === true
    ? openCluster(library, address)
    : new library.Redis(Redacted.value(url), {
        ...options,
        enableOfflineQueue,
        reconnectOnError,
        retryStrategy
      })
}

/** Answers of a server that accepts no commands now, with the next step. Other texts may contain an address. */
const refusals: ReadonlyArray<readonly [answer: RegExp, reason: string]> = [
  [/^(?:WRONGPASS|NOAUTH|NOPERM)\b/u, "refuses the user or the password of REDIS_URL"],
  [/^LOADING\b/u, "is loading its data (LOADING): it accepts commands when that has ended"],
  [/^MASTERDOWN\b/u, "is a replica without its master (MASTERDOWN): REDIS_URL has to name the master"],
  [/^READONLY\b/u, "is a replica (READONLY): REDIS_URL has to name the master"],
  [/^OOM\b/u, "is full (OOM): raise its maxmemory"],
  [
    /^ERR max number of clients/u,
    "has too many connections (max number of clients reached): raise its maxclients"
  ]
]

/** The client would use database 0, which may belong to another program. */
const refusesDatabase = (error: Error): boolean => {
  const command: unknown = Reflect.get(error, "command")
  return typeof command === "object" && command !== null && Reflect.get(command, "name") === "select"
}

/** Why there is no connection. */
const reasonOf = (error: Error): string => {
  // A cluster reports the error of its last node separately.
  const last: unknown = Reflect.get(error, "lastNodeError")
  if (refusesDatabase(error)) return "refuses the database that REDIS_URL names"
  const { message } = isError(last) ? last : error
  const refusal = refusals.find(([answer]) => answer.test(message))
  if (refusal !== undefined) return refusal[1]
  const code = codeOf(last ?? error)
  return `does not answer at REDIS_URL${code === "" ? "" : ` (${code})`}`
}

/**
 * Connects to Redis. When Redis does not answer in time, the service starts and connecting goes on in the background.
 * `report` is called once for each loss of the connection.
 */
export const connect = (
  url: Redacted.Redacted,
  report: (reason: string) => Effect.Effect<void> = (reason) =>
    Effect.logWarning(`Redis ${reason}; trying again`)
) =>
  Effect.gen(function* () {
    const library = yield* optional("Redis (REDIS_URL)", () => import("ioredis"))
    const runFork = Runtime.runFork(yield* Effect.runtime())
    let isLost = false
    const lose = (reason: string) => {
      if (!isLost) runFork(report(reason))
      isLost = true
    }
    const redis = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const opened = open(library, url)
        opened.on("error", (error) => {
          lose(reasonOf(error))
          if (refusesDatabase(error)) opened.disconnect(true)
        })
        opened.on("ready", () => {
          if (isLost) runFork(Effect.logInfo("Redis is back"))
          isLost = false
        })
        return opened
      }),
      (opened) => Effect.sync(() => opened.disconnect())
    )
    yield* Effect.async<void>((resume) => {
      if (redis.status === "ready") return resume(Effect.void)
      const ready = () => resume(Effect.void)
      redis.once("ready", ready)
      return Effect.sync(() => redis.off("ready", ready))
    }).pipe(Effect.timeoutOption(timeoutsMs.connect))
    // The client waits without an error while the server says that it is loading its data.
    if (redis.status === "connect")
      lose("accepts connections but no commands yet: it may be loading its data")
    return redis
  })

/** `DedupeStore`, `RateLimiter` and `Realtime`. */
export const backends = (redis: Redis | Cluster) =>
  Layer.mergeAll(DedupeRedis.layerRedis(redis), RateRedis.layerRedis(redis), RealtimeRedis.layerRedis(redis))
