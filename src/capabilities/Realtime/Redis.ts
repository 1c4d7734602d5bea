/**
 * {@link Realtime} by publish and subscribe of Redis. A signal reaches the subscribers of its own process at once.
 * Other processes get it in the background, in batches, so that publishing never waits for Redis.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import type { Cluster, Redis } from "ioredis"
import { Realtime, Signal } from "../Realtime.ts"
import * as Subscribers from "./Subscribers.ts"

const channel = "{spoke}:realtime"

/** Maximum number of signals that wait to be sent. The oldest are dropped first. */
const maxWaitingSignals = 4_096
/** Maximum number of signals of one message. */
const batch = 100

const Letter = Schema.parseJson(Schema.Struct({ from: Schema.String, signals: Schema.Array(Signal) }))
const write = Schema.encodeSync(Letter)
const read = Schema.decodeUnknownOption(Letter)

/** A connection that subscribes cannot run other commands. */
const subscribingConnection = (redis: Redis | Cluster) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const own =
        "nodes" in redis
          ? redis.duplicate([], {
              enableOfflineQueue: true,
              redisOptions: { ...redis.options.redisOptions, commandTimeout: undefined }
            })
          : redis.duplicate({ enableOfflineQueue: true, commandTimeout: undefined })
      // The connection that it was duplicated from reports errors.
      own.on("error", () => {})
      return own
    }),
    (own) => Effect.sync(() => own.disconnect())
  )

/** `redis` is a connection for short commands. The subscription opens its own connection with the same settings. */
export const layerRedis = (redis: Redis | Cluster) =>
  Layer.scoped(
    Realtime,
    Effect.gen(function* () {
      const from = crypto.randomUUID()
      const { deliver, signalAll, subscribe } = Subscribers.make()
      const runtime = yield* Effect.runtime()
      const outgoing = yield* Queue.sliding<Signal>(maxWaitingSignals)
      const listener = yield* subscribingConnection(redis)

      // The connection has a time-out for each command.
      const send = (signals: Chunk.Chunk<Signal>) =>
        Effect.catchAll(
          Effect.tryPromise(() => redis.publish(channel, write({ from, signals: [...signals] }))),
          (cause) => Effect.logWarning("Other processes could not be notified", cause)
        )
      yield* Queue.takeBetween(outgoing, 1, batch).pipe(
        Effect.flatMap(send),
        Effect.forever,
        Effect.forkScoped
      )

      listener.on("message", (_channel, letter) => {
        // The process also receives its own messages, which are the most.
        if (letter.includes(from)) return
        const received = read(letter)
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

      // The subscription moves to another node of the cluster by itself, and signals may be lost.
      listener.on("-node", () => Runtime.runFork(runtime)(signalAll))

      return {
        publish: (signal) => Effect.zipRight(deliver(signal), Effect.asVoid(Queue.offer(outgoing, signal))),
        subscribe
      }
    })
  )
