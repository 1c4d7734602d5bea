import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs the effect in a fiber of its own and waits for its end, for callers that cannot be interrupted. There, a
 * time-out inside the effect could not interrupt anything. An interruption of the caller does not reach the effect.
 */
export const inOwnFiber = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), Fiber.join))

/**
 * Runs the effect in a fiber of its own, for results that callers share, such as those of a cache. An interrupted caller
 * does not wait, and does not interrupt the effect. A cache would keep the interruption for all later callers.
 */
export const inSharedFiber = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDaemon(effect), Fiber.join)
