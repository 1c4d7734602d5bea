/** Times by the clock of the database, which all processes share. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"

/** SQL for the time after `duration`. */
export const timeAfter = (sql: SqlClient.SqlClient, duration: Duration.DurationInput) =>
  sql`clock_timestamp() + ${Duration.toMillis(duration)}::float8 * interval '1 millisecond'`
