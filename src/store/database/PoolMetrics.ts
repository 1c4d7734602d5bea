/** Use of the connection pool, for `/metrics`. Waiting callers are in the metrics of `FairConnection`'s limit. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Pg from "pg"

const connections = Metric.gauge("spoke_database_connections", {
  description: "Open connections of the pool: busy, or idle"
})
const limit = Metric.gauge("spoke_database_connections_limit", {
  description: "How many connections the pool may open"
})

const sampleInterval = Duration.seconds(1)

/** Measures `pool` until the scope closes. */
export const watch = (pool: Pg.Pool) =>
  Effect.gen(function* () {
    const busy = Metric.tagged(connections, "state", "busy")
    const idle = Metric.tagged(connections, "state", "idle")
    yield* Metric.set(limit, pool.options.max)
    const sample = Effect.suspend(() =>
      Effect.all([Metric.set(busy, pool.totalCount - pool.idleCount), Metric.set(idle, pool.idleCount)], {
        discard: true
      })
    )
    yield* sample
    // The pool may be opened in an uninterruptible region; this must be interruptible, or the pool would never close.
    yield* Effect.forkScoped(
      Effect.interruptible(Effect.forever(Effect.zipRight(Effect.sleep(sampleInterval), sample)))
    )
  }).pipe(Effect.withTracerEnabled(false))
