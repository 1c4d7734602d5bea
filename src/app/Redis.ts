/** The connection to Redis: for short commands; whoever subscribes or blocks opens one of its own from it. */
import { Redis } from "ioredis"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Runtime from "effect/Runtime"

export class RedisConnection extends Context.Tag("app/RedisConnection")<RedisConnection, Redis>() {}

/** Milliseconds. */
const patience = { connect: 5_000, command: 2_000, longestRetry: 2_000 }

/** Connected, or still trying in the background when Redis does not answer in time: that is not the end of the service. */
export const connect = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime()
    const redis = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const opened = new Redis(Redacted.value(url), {
          connectTimeout: patience.connect,
          commandTimeout: patience.command,
          maxRetriesPerRequest: 1,
          // What Redis cannot take now fails at once: nobody waits for it, and nothing piles up here.
          enableOfflineQueue: false,
          retryStrategy: (times) => Math.min(times * 100, patience.longestRetry)
        })
        let lost = false
        // One line when it goes and one when it is back; the error may carry an address and stays here.
        opened.on("error", () => {
          if (lost) return
          lost = true
          Runtime.runFork(runtime)(Effect.logWarning("Redis cannot be reached; trying again"))
        })
        opened.on("ready", () => {
          if (lost) Runtime.runFork(runtime)(Effect.logInfo("Redis is back"))
          lost = false
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
    }).pipe(Effect.timeoutOption(patience.connect))
    return redis
  })

export const layer = (url: Redacted.Redacted) => Layer.scoped(RedisConnection, connect(url))
