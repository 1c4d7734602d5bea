import type * as SqlClient from "@effect/sql/SqlClient"

/** A limit as a part of the SQL text: for a parameter, the planner assumes a tenth of the table. */
export const literalLimit = (sql: SqlClient.SqlClient, rows: number) =>
  sql.literal(`limit ${Math.trunc(rows)}`)
