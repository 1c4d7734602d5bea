/** A fiber for work that a caller without interruption waits for. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs the effect in a fiber of its own, which can be interrupted, and waits for its end. In a region without
 * interruption a time-out inside the effect would otherwise wait for what it should end. An interruption of the caller
 * does not reach the effect.
 */
export const inOwnFiber = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), Fiber.join))
