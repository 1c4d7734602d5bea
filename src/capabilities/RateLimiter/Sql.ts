/**
 * {@link RateLimiter} in the table `rate_counters`: one statement, which reads the clock once it holds the row lock.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import {
  counterOf,
  partsPerWindow,
  RateLimiter,
  RateLimiterError,
  resultOf,
  windowOf
} from "../RateLimiter.ts"

const Row = Schema.Struct({
  /** Requests of each part, oldest first. The last one is `part`. */
  counts: Schema.Array(Schema.Number),
  part: Schema.Number,
  granted: Schema.Boolean,
  now: Schema.Number
})

/** Maximum number of counters that one statement removes. */
const maxRemoved = 1_000

/** Removes counters that count nothing any more. True when there may be more. */
export const removeExpired = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql`
      with old as materialized (
        select name from rate_counters where expires_at < clock_timestamp() limit ${maxRemoved}::int for update skip locked
      )
      delete from rate_counters c using old where c.name = old.name returning c.name`,
    (rows) => rows.length === maxRemoved
  )

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const count = SqlSchema.single({
    Request: Schema.Struct({ name: Schema.String, requests: Schema.Int, window: Schema.Number }),
    Result: Row,
    execute: ({ name, requests, window }) => {
      const now = sql`(extract(epoch from clock_timestamp()) * 1000)::float8`
      const current = sql`floor(${now} * ${partsPerWindow}::float8 / ${window}::float8)::int8`
      const partCount = partsPerWindow + 1
      const expires = sql`clock_timestamp() + (${(window * (partsPerWindow + 2)) / partsPerWindow}::float8 * interval '1 millisecond')`
      return sql`
        insert into rate_counters as known (name, part, counts, granted, expires_at)
        values (${name}, ${current}, array_fill(0, array[${partsPerWindow}::int]) || 1, true, ${expires})
        on conflict (name) do update set (part, counts, granted, expires_at) = (
          select at.part,
            case when free.granted
              then shifted.counts[1:${partsPerWindow}::int] || (shifted.counts[${partCount}::int] + 1)
              else shifted.counts end,
            free.granted,
            case when free.granted then ${expires} else known.expires_at end
          from (
            -- A part more than a window ahead is from when the clock was ahead. Its requests do not count.
            select known.part > ${current} + ${partCount}::int as ahead, greatest(known.part, ${current}) as part offset 0
          ) as last
          cross join lateral (select case when last.ahead then ${current} else last.part end as part) as at
          cross join lateral (
            select known.counts[1 + moved.by : ${partCount}::int] || array_fill(0, array[moved.by]) as counts
            from (
              select case when last.ahead then ${partCount}::int else least(at.part - known.part, ${partCount}::int) end::int as by
            ) as moved
          ) as shifted
          cross join lateral (
            select sum(one) < ${requests}::int as granted from unnest(shifted.counts) as one
          ) as free
        )
        returning counts, part::float8 as part, granted, ${now} as now`
    }
  })

  yield* removeExpired(sql).pipe(
    Effect.repeat({ while: (hasMore) => hasMore }),
    Effect.catchAllCause((cause) => Effect.logWarning("Old counts of requests were not removed", cause)),
    Effect.withTracerEnabled(false),
    Effect.delay("1 minute"),
    Effect.repeat(Schedule.spaced("10 minutes")),
    Effect.forkScoped
  )

  return RateLimiter.of({
    take: (name, limit) =>
      count({ name: counterOf(name, limit), requests: limit.requests, window: windowOf(limit) }).pipe(
        Effect.map(({ counts, granted, now, part }) => {
          const used = counts.reduce((sum, one) => sum + one, 0)
          const firstUsed = counts.findIndex((one) => one > 0)
          return resultOf(limit, {
            granted,
            now,
            used,
            oldest: part - partsPerWindow + Math.max(0, firstUsed)
          })
        }),
        Effect.mapError(
          () => new RateLimiterError({ message: "The counts in the database cannot be reached." })
        ),
        Effect.withSpan("RateLimiter.take")
      )
  })
})

export const layerSql = Layer.scoped(RateLimiter, make)
