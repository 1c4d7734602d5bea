/**
 * {@link DedupeStore} in Redis, where keys expire automatically. For keys whose loss with an emptied Redis is
 * acceptable. Claims of inbound events are not stored here: they belong to the transaction that accepts the event
 * (store/channels/InboundEvents), because a stored claim without its event would lose the event.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Cluster, Redis } from "ioredis"
import { DedupeStore } from "../DedupeStore.ts"
import { orUnreachable } from "./Unreachable.ts"

/** The braces put all keys into one slot of a Redis cluster. */
const nameOf = (key: string) => `{spoke}:dedupe:${key}`

const call = <A>(command: () => Promise<A>) => orUnreachable(Effect.tryPromise(command))

/** `redis` is a connection for short commands, with a time-out for each. */
export const layerRedis = (redis: Redis | Cluster) =>
  Layer.succeed(
    DedupeStore,
    DedupeStore.of({
      claim: (key, ttl) =>
        call(() => redis.set(nameOf(key), "1", "PX", Math.ceil(Duration.toMillis(ttl)), "NX")).pipe(
          Effect.map((answer) => answer === "OK"),
          Effect.withSpan("DedupeStore.claim")
        ),
      release: (key) =>
        call(() => redis.del(nameOf(key))).pipe(Effect.asVoid, Effect.withSpan("DedupeStore.release"))
    })
  )
