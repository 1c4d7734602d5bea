import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs the effect in a fiber of its own and waits for its end, for callers that cannot be interrupted. There, a
 * time-out inside the effect could not interrupt anything. An interruption of the caller does not reach the effect.
 */
export const inOwnFiber = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), Fiber.join))
