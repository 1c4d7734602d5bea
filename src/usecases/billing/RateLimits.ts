/**
 * How often API keys may be used: each as its own limit says, else as the server's; without either there is
 * nothing to count. A key that is bound to origins stands in web pages, where one stranger could use up what all the others
 * need: its limit holds for each caller's address by itself.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { monotonicMillis } from "../../domain/Elapsed.ts"
import type { LiveKey } from "../../capabilities/KeyStore.ts"
import { RateLimiter, RateLimiterError, type Taken } from "../../capabilities/RateLimiter.ts"
import type { RateLimit } from "../../domain/accounts/RateLimit.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"

/** The limit of keys that have none of their own. */
export class RateLimitSettings extends Context.Tag("usecases/RateLimitSettings")<
  RateLimitSettings,
  { readonly rateLimit: RateLimit | null }
>() {}

/** How a limited key stands, this request included. */
export interface Allowance {
  readonly granted: boolean
  readonly limit: RateLimit
  readonly remaining: number
  /** Seconds, rounded up, until the first of the used requests is given back. */
  readonly reset: number
}

/** Longest wait for the counts; a request is worth more than its being counted. */
const countTimeout = "500 millis"
/** Refusals that are remembered, so that a flood of refused requests causes no round trips. */
const capacity = 10_000
/** Milliseconds between two lines about counts that cannot be reached. */
const quiet = 10_000

const failures = Metric.counter("spoke_rate_limiter_failures_total", {
  description: "Requests of limited keys that were let through because they could not be counted.",
  incremental: true
})
const refusals = Metric.counter("spoke_rate_limited_total", {
  description: "Requests that were refused because their key had used up its rate limit.",
  incremental: true
})

export class RateLimits extends Effect.Service<RateLimits>()("usecases/billing/RateLimits", {
  effect: Effect.gen(function* () {
    const limiter = yield* RateLimiter
    // Told from the start: a rate cannot be made of a counter that appears with its first count.
    for (const counter of [failures, refusals]) counter.unsafeUpdate(0, [])
    const settings = yield* RateLimitSettings
    /** Until when each is refused without asking the limiter. */
    const refused = new Map<string, number>()
    let told = Number.NEGATIVE_INFINITY

    const limitOf = (key: Pick<LiveKey, "rateLimit">): RateLimit | null => key.rateLimit ?? settings.rateLimit

    const tell = CheapSpans.fn("RateLimits.tell")(function* (now: number) {
      yield* Metric.increment(failures)
      if (now - told < quiet) return
      told = now
      yield* Effect.logError("Rate limits cannot be counted: requests are let through")
    })

    const count = (name: string, limit: RateLimit, now: number) =>
      limiter.take(name, limit).pipe(
        Effect.timeoutFail({
          duration: countTimeout,
          onTimeout: () => new RateLimiterError({ message: "The counts do not answer." })
        }),
        Effect.catchAll(() => Effect.as(tell(now), null))
      )

    const remember = (name: string, until: number) => {
      refused.set(name, until)
      for (const oldest of refused.keys()) {
        if (refused.size <= capacity) break
        refused.delete(oldest)
      }
    }

    const view = (limit: RateLimit, { granted, remaining, reset }: Taken): Allowance => ({
      granted,
      limit,
      remaining,
      reset: Math.ceil(reset / 1_000)
    })

    /** Counts one request of `key` by the caller at `address`; null when it is not limited, or cannot be counted. */
    const take = CheapSpans.fn("RateLimits.take")(function* (key: LiveKey, address: string) {
      const limit = limitOf(key)
      if (limit === null) return null
      const name = key.allowedOrigins.length === 0 ? key.keyId : `${key.keyId}@${address}`
      const place = `${name} ${limit.requests} ${limit.window}`
      const now = yield* monotonicMillis
      const until = refused.get(place) ?? 0
      if (until > now) {
        yield* Metric.increment(refusals)
        return view(limit, { granted: false, remaining: 0, reset: until - now })
      }
      refused.delete(place)
      const taken = yield* count(name, limit, now)
      if (taken === null) return null
      if (!taken.granted) {
        yield* Metric.increment(refusals)
        remember(place, now + taken.reset)
      }
      return view(limit, taken)
    })

    return { limitOf, take } as const
  })
}) {}
