/** A monotonic clock, for durations, never for the time of day. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Whole milliseconds since an unspecified moment. They are not affected when the system time is set. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.currentTimeNanos, (nanos) =>
  Number(nanos / 1_000_000n)
)
