/**
 * {@link Realtime} by publish and subscribe of Redis. A signal reaches the subscribers of its own process at once.
 * Other processes get it in the background, in batches, so that publishing never waits for Redis.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { Cluster, Redis } from "ioredis"
import { Realtime, Signal } from "../Realtime.ts"
import * as Subscribers from "./Subscribers.ts"

const channel = "{spoke}:realtime"

const Message = Schema.parseJson(Schema.Struct({ from: Schema.String, signals: Schema.Array(Signal) }))
const encode = Schema.encodeSync(Message)
const decode = Schema.decodeUnknownOption(Message)

/** A subscription sends nothing by itself, so only an answer shows that its connection is alive. */
const pingInterval = Duration.seconds(10)

/** A connection that subscribes cannot run other commands. */
const subscribingConnection = (redis: Redis | Cluster) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const connection =
        "nodes" in redis
          ? redis.duplicate([], {
              enableOfflineQueue: true,
              redisOptions: { ...redis.options.redisOptions, commandTimeout: undefined }
            })
          : redis.duplicate({ enableOfflineQueue: true, commandTimeout: undefined })
      // Errors are reported by the connection that was duplicated.
      connection.on("error", () => {})
      return connection
    }),
    (connection) => Effect.sync(() => connection.disconnect())
  )

/** `redis` is a connection for short commands. The subscription opens its own connection with the same settings. */
export const layerRedis = (redis: Redis | Cluster) =>
  Layer.scoped(
    Realtime,
    Effect.gen(function* () {
      const from = crypto.randomUUID()
      const { deliver, makePublish, signalAll, subscribe } = Subscribers.make()
      const runtime = yield* Effect.runtime()
      const listener = yield* subscribingConnection(redis)

      // The connection has a time-out for each command.
      const publish = yield* makePublish((signals) =>
        Effect.tryPromise(() => redis.publish(channel, encode({ from, signals })))
      )

      listener.on("message", (_channel, message) => {
        // The process also receives its own messages.
        if (message.includes(from)) return
        const received = decode(message)
        if (Option.isSome(received)) {
          Runtime.runFork(runtime)(Effect.forEach(received.value.signals, deliver, { discard: true }))
        }
      })
      // Signals may have been lost before each start of listening.
      listener.on("ready", () => {
        listener.subscribe(channel).then(
          () => Runtime.runFork(runtime)(signalAll),
          // The connection was lost again. Its next `ready` tries again.
          () => undefined
        )
      })

      yield* Effect.tryPromise(() => listener.ping()).pipe(
        Effect.ignore,
        Effect.repeat(Schedule.spaced(pingInterval)),
        Effect.forkScoped
      )

      // The subscription moves to another node of the cluster by itself, and signals may be lost.
      listener.on("-node", () => Runtime.runFork(runtime)(signalAll))

      return { publish, subscribe }
    })
  )
