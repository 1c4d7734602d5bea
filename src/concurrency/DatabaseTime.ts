/** Times by the clock of the database, which all processes share. */
import type { Constructor, Fragment } from "@effect/sql/Statement"
import * as Duration from "effect/Duration"

/** SQL for the time after `duration`. */
export const timeAfter = (sql: Constructor, duration: Duration.DurationInput): Fragment =>
  sql`clock_timestamp() + ${Duration.toMillis(duration)}::float8 * interval '1 millisecond'`
