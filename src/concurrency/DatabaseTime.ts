/** Times by the clock of the database, which all processes share. */
import type { Constructor, Fragment } from "@effect/sql/Statement"
import * as Duration from "effect/Duration"

/** SQL for the time after `duration`. */
export const timeAfter = (sql: Constructor, duration: Duration.DurationInput): Fragment =>
  sql`clock_timestamp() + ${Duration.toMillis(duration)}::float8 * interval '1 millisecond'`

/**
 * SQL for whether the time `at` has come. It is written at most `max` in advance. A later one was written while the
 * clock was ahead, and has come, too.
 */
export const hasCome = (sql: Constructor, at: Fragment, max: Duration.DurationInput): Fragment =>
  sql`(${at} <= clock_timestamp() or ${at} > ${timeAfter(sql, max)})`
