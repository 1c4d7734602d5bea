/**
 * Rate limits of API keys: the key's own limit, else the server's; without either nothing is counted. A key that is
 * bound to origins and the public name of a widget are used by web pages, where one visitor could use up the limit of
 * all others: their limit applies per client address.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { LiveKey } from "../../capabilities/KeyStore.ts"
import { RateLimiter, RateLimiterError, type RateLimitResult } from "../../capabilities/RateLimiter.ts"
import type { RateLimit } from "../../domain/accounts/RateLimit.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { LruCache } from "../../concurrency/LruCache.ts"

/** The limit of keys without their own. */
export class RateLimitSettings extends Context.Tag("usecases/RateLimitSettings")<
  RateLimitSettings,
  { readonly rateLimit: RateLimit | null }
>() {}

/** The state of a limited key, including this request. */
export interface Allowance {
  readonly granted: boolean
  readonly limit: RateLimit
  readonly remaining: number
  /** Seconds, rounded up, until the first used request is given back. */
  readonly reset: number
}

/** Time-out of the counter. The request is allowed when it is unavailable. */
const countTimeout = "500 millis"
/** Maximum remembered refusals. They are answered without a round trip to the counter. */
const maxRememberedRefusals = 10_000
/** Minimum time between two log lines about an unavailable counter. */
const logIntervalMillis = 10_000

const failures = Metric.counter("spoke_rate_limiter_failures_total", {
  description: "Requests of limited keys that were allowed because they could not be counted.",
  incremental: true
})
const refusals = Metric.counter("spoke_rate_limited_total", {
  description: "Requests that were refused because their key had used up its rate limit.",
  incremental: true
})

export class RateLimits extends Effect.Service<RateLimits>()("usecases/billing/RateLimits", {
  effect: Effect.gen(function* () {
    const limiter = yield* RateLimiter
    // Registered with 0: a rate needs a counter that exists before its first increment.
    for (const counter of [failures, refusals]) counter.unsafeUpdate(0, [])
    const settings = yield* RateLimitSettings
    /** By key, the time until which requests are refused without asking the limiter. */
    const refused = new LruCache<number>()
    let lastLoggedAt = Number.NEGATIVE_INFINITY

    const limitOf = (key: Pick<LiveKey, "rateLimit">): RateLimit | null => key.rateLimit ?? settings.rateLimit

    const logUnavailable = CheapSpans.fn("RateLimits.logUnavailable")(function* (
      now: number,
      { message }: RateLimiterError
    ) {
      yield* Metric.increment(failures)
      if (now - lastLoggedAt < logIntervalMillis) return
      lastLoggedAt = now
      yield* Effect.logError("Rate limits cannot be counted: requests are allowed", message)
    })

    const count = (name: string, limit: RateLimit, now: number) =>
      limiter.take(name, limit).pipe(
        Effect.timeoutFail({
          duration: countTimeout,
          onTimeout: () => new RateLimiterError({ message: "The counts do not answer." })
        }),
        Effect.catchAll((error) => Effect.as(logUnavailable(now, error), null))
      )

    const toAllowance = (limit: RateLimit, { granted, remaining, reset }: RateLimitResult): Allowance => ({
      granted,
      limit,
      remaining,
      reset: Math.ceil(reset / 1_000)
    })

    /**
     * Counts one request of `key` by the client at `address`. `isWidget`: the key is the public name of a widget. Null
     * when the key is not limited or the counter is unavailable.
     */
    const take = CheapSpans.fn("RateLimits.take")(function* (
      key: LiveKey,
      address: string,
      isWidget: boolean
    ) {
      const limit = limitOf(key)
      if (limit === null) return null
      const isInPages = isWidget || key.allowedOrigins.length > 0
      const name = isInPages ? `${key.keyId}@${address}` : key.keyId
      const cacheKey = `${name} ${limit.requests} ${limit.window}`
      const now = yield* monotonicMillis
      const until = refused.get(cacheKey) ?? 0
      if (until > now) {
        yield* Metric.increment(refusals)
        return toAllowance(limit, { granted: false, remaining: 0, reset: until - now })
      }
      refused.delete(cacheKey)
      const result = yield* count(name, limit, now)
      if (result === null) return null
      if (!result.granted) {
        yield* Metric.increment(refusals)
        refused.set(cacheKey, now + result.reset)
        refused.trim(maxRememberedRefusals)
      }
      return toAllowance(limit, result)
    })

    return { limitOf, take } as const
  })
}) {}
