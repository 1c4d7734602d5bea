/** A monotonic clock: for durations, never for the time of day. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * Milliseconds since some moment, whole ones. They go on evenly when the time of the machine is set back or forward: what is
 * to end in a second ends in a second.
 */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.currentTimeNanos, (nanos) =>
  Number(nanos / 1_000_000n)
)
