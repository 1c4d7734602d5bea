/** {@link RateLimiter} of a single process. Its counters are lost when the process ends. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LruCache } from "../../concurrency/LruCache.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { RateLimit } from "../../domain/accounts/RateLimit.ts"
import { counterOf, partAt, partsPerWindow, RateLimiter, resultOf } from "../RateLimiter.ts"

/** Maximum number of counters. Beyond it, the least recently used one is dropped. */
const maxCounters = 100_000

/** Requests by part, oldest first. */
type Counter = Map<number, number>

const count = (counters: LruCache<Counter>, name: string, limit: RateLimit, now: number) => {
  const counter = counters.get(name) ?? new Map<number, number>()
  const current = Math.max(partAt(limit, now), ...counter.keys())
  let used = 0
  for (const [part, requests] of counter) {
    if (part < current - partsPerWindow) counter.delete(part)
    else used += requests
  }
  const granted = used < limit.requests
  if (granted) counter.set(current, (counter.get(current) ?? 0) + 1)
  counters.set(name, counter)
  counters.trim(maxCounters)
  const [oldest = current] = counter.keys()
  return resultOf(limit, { granted, now, oldest, used: used + (granted ? 1 : 0) })
}

export const layerMemory = Layer.sync(RateLimiter, () => {
  const counters = new LruCache<Counter>()
  return {
    take: (name, limit) =>
      Effect.map(monotonicMillis, (now) => count(counters, counterOf(name, limit), limit, now))
  }
})
