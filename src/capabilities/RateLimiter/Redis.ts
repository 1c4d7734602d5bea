/** {@link RateLimiter} in Redis: one script on one key, by the server's clock. */
import type { UnknownException } from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ParseError } from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type { Cluster, Redis } from "ioredis"
import { isError } from "../../domain/ThrownErrors.ts"
import { counterOf, partsPerWindow, RateLimiter, RateLimiterError, windowOf } from "../RateLimiter.ts"

/**
 * A hash from part to requests, which expires with its last part. Parts more than a window ahead are from when the clock
 * was ahead.
 */
const script = `
local limit, window, parts = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local current = math.floor(now * parts / window)
local used, oldest = 0, current
local counts = redis.call('HGETALL', KEYS[1])
for at = 1, #counts, 2 do
  local counted = tonumber(counts[at])
  if counted < current - parts or counted > current + parts + 1 then
    redis.call('HDEL', KEYS[1], counts[at])
  else
    used = used + tonumber(counts[at + 1])
    if counted < oldest then oldest = counted end
  end
end
local granted = 0
if used < limit then
  granted = 1
  used = used + 1
  redis.call('HINCRBY', KEYS[1], string.format('%d', current), 1)
  redis.call('PEXPIRE', KEYS[1], string.format('%d', math.ceil(window * (parts + 2) / parts)))
end
return { granted, limit - used, math.max(1, math.ceil((oldest + parts + 1) * window / parts) - now) }`

const decode = Schema.decodeUnknown(Schema.Tuple(Schema.Int, Schema.Int, Schema.Int))

/** For the log: what Redis answered, for example that it is full. */
const causeOf = ({ message, ...failure }: UnknownException | ParseError) =>
  "error" in failure && isError(failure.error) ? failure.error.message : message

/** `redis` is a connection for short commands, with a time-out for each. */
export const layerRedis = (redis: Redis | Cluster) =>
  Layer.succeed(
    RateLimiter,
    RateLimiter.of({
      take: (name, limit) =>
        Effect.tryPromise(() =>
          // The braces make the key a hash tag of a cluster.
          redis.eval(
            script,
            1,
            `spoke:rate:{${counterOf(name, limit)}}`,
            limit.requests,
            windowOf(limit),
            partsPerWindow
          )
        ).pipe(
          Effect.flatMap(decode),
          Effect.map(([granted, remaining, reset]) => ({
            granted: granted === 1,
            remaining: Math.max(0, remaining),
            reset
          })),
          Effect.mapError(
            (failure) =>
              new RateLimiterError({ message: `The counts in Redis cannot be reached: ${causeOf(failure)}` })
          ),
          Effect.withSpan("RateLimiter.take")
        )
    })
  )
