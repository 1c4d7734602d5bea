/**
 * Sliding-window rate limits. A window has {@link partsPerWindow} parts, and a request counts until its whole part has
 * left the window. So no window has more requests than the limit, wherever it begins, and a request is released at most
 * a sixtieth of the window late.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { RateLimit } from "../domain/accounts/RateLimit.ts"

/** The store of the counters is not available. */
export class RateLimiterError extends Schema.TaggedError<RateLimiterError>()("RateLimiterError", {
  message: Schema.String
}) {}

export interface RateLimitResult {
  /** A refused request does not count. */
  readonly granted: boolean
  /** Number of requests that would be granted now. */
  readonly remaining: number
  /** Milliseconds until the oldest counted requests are released. */
  readonly reset: number
}

export class RateLimiter extends Context.Tag("capabilities/RateLimiter")<
  RateLimiter,
  {
    /** Counts one request of `name`, if the limit allows it. Exact across all processes that share the backend. */
    readonly take: (name: string, limit: RateLimit) => Effect.Effect<RateLimitResult, RateLimiterError>
  }
>() {}

/** Number of parts of a window. */
export const partsPerWindow = 60

/** Length of a window in milliseconds. */
export const windowOf = ({ window }: RateLimit): number => window * 1_000

/** The part of a time. Multiplied first, because a part need not be a whole number of milliseconds. */
export const partAt = (limit: RateLimit, now: number): number =>
  Math.floor((now * partsPerWindow) / windowOf(limit))

/** The counter of `name`, one for each window length. */
export const counterOf = (name: string, { window }: RateLimit): string => `${name}:${window}`

/** The result for a counter: `used` includes the request, and its oldest part `oldest` is released first. */
export const resultOf = (
  limit: RateLimit,
  { granted, now, oldest, used }: { granted: boolean; now: number; oldest: number; used: number }
): RateLimitResult => ({
  granted,
  remaining: Math.max(0, limit.requests - used),
  reset: Math.max(
    1,
    Math.ceil(Math.ceil(((oldest + partsPerWindow + 1) * windowOf(limit)) / partsPerWindow) - now)
  )
})
