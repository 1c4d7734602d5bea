/**
 * Requests counted in windows that slide. A window is looked at in {@link parts} and the one that has just begun, and a
 * request counts until its whole part has left the window: never more than the limit in any window, wherever it begins,
 * and each request is given back at most a sixtieth of the window later than it might be.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { RateLimit } from "../domain/accounts/RateLimit.ts"

/** The store of the counts could not be reached. */
export class RateLimiterError extends Schema.TaggedError<RateLimiterError>()("RateLimiterError", {
  message: Schema.String
}) {}

export interface Taken {
  /** A refused request uses nothing up. */
  readonly granted: boolean
  /** Requests that could follow at once. */
  readonly remaining: number
  /** Milliseconds until the first of the used ones is given back. */
  readonly reset: number
}

export class RateLimiter extends Context.Tag("capabilities/RateLimiter")<
  RateLimiter,
  {
    /** Uses up one request of `name`, if one is left. Exact among all who share the backend. */
    readonly take: (name: string, limit: RateLimit) => Effect.Effect<Taken, RateLimiterError>
  }
>() {}

/** Of a window. */
export const parts = 60

/** Milliseconds of a window. */
export const windowOf = ({ window }: RateLimit): number => window * 1_000

/** The part that a moment lies in. Multiplied first: a part need not be a whole number of milliseconds. */
export const partAt = (limit: RateLimit, now: number): number => Math.floor((now * parts) / windowOf(limit))

/** The counter of `name`: each window length has a counter of its own. */
export const counterOf = (name: string, { window }: RateLimit): string => `${name}:${window}`

/** What is told of a count: `used` after the request, whose oldest part `oldest` is given back first. */
export const taken = (
  limit: RateLimit,
  { granted, now, oldest, used }: { granted: boolean; now: number; oldest: number; used: number }
): Taken => ({
  granted,
  remaining: Math.max(0, limit.requests - used),
  reset: Math.max(1, Math.ceil(Math.ceil(((oldest + parts + 1) * windowOf(limit)) / parts) - now))
})
