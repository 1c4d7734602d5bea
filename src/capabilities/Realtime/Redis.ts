/**
 * {@link Realtime} by publish and subscribe of Redis. A signal reaches the subscribers of its own process at once; the
 * others hear of it in the background, many in one go, so that publishing never waits for Redis.
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

/** Signals that wait to be sent; the oldest go first. */
const backlog = 4_096
/** Signals that are sent in one letter. */
const batch = 100

const Letter = Schema.parseJson(Schema.Struct({ from: Schema.String, signals: Schema.Array(Signal) }))
const write = Schema.encodeSync(Letter)
const read = Schema.decodeUnknownOption(Letter)

/** A connection that subscribes can do nothing else. */
const listening = (redis: Redis | Cluster) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const own =
        "nodes" in redis
          ? redis.duplicate([], {
              enableOfflineQueue: true,
              redisOptions: { ...redis.options.redisOptions, commandTimeout: undefined }
            })
          : redis.duplicate({ enableOfflineQueue: true, commandTimeout: undefined })
      // Told by the connection that it came from.
      own.on("error", () => {})
      return own
    }),
    (own) => Effect.sync(() => own.disconnect())
  )

/** `redis`: for short commands; the subscription opens a connection of its own with its settings. */
export const layerRedis = (redis: Redis | Cluster) =>
  Layer.scoped(
    Realtime,
    Effect.gen(function* () {
      const from = crypto.randomUUID()
      const { deliver, disturb, subscribe } = Subscribers.make()
      const runtime = yield* Effect.runtime()
      const outgoing = yield* Queue.sliding<Signal>(backlog)
      const listener = yield* listening(redis)

      // The connection gives up by itself on a command that is not answered.
      const send = (signals: Chunk.Chunk<Signal>) =>
        Effect.catchAll(
          Effect.tryPromise(() => redis.publish(channel, write({ from, signals: [...signals] }))),
          (cause) => Effect.logWarning("Other processes could not be told", cause)
        )
      yield* Queue.takeBetween(outgoing, 1, batch).pipe(
        Effect.flatMap(send),
        Effect.forever,
        Effect.forkScoped
      )

      listener.on("message", (_channel, letter) => {
        // Its own come back, too, and are the most.
        if (letter.includes(from)) return
        const received = read(letter)
        if (Option.isSome(received)) {
          Runtime.runFork(runtime)(Effect.forEach(received.value.signals, deliver, { discard: true }))
        }
      })
      // Each time that listening begins, others may have been lost before it.
      listener.on("ready", () => {
        listener.subscribe(channel).then(
          () => Runtime.runFork(runtime)(disturb),
          // The connection is gone again: its next `ready` tries again.
          () => undefined
        )
      })

      // The subscription moves by itself when a node of a cluster goes.
      listener.on("-node", () => Runtime.runFork(runtime)(disturb))

      return {
        publish: (signal) => Effect.zipRight(deliver(signal), Effect.asVoid(Queue.offer(outgoing, signal))),
        subscribe
      }
    })
  )
