/** Encodes values for `jsonb`. PostgreSQL refuses NUL and lone surrogates, which cut texts may contain. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Schema from "effect/Schema"
import { sanitizeJson } from "../domain/Text.ts"

/** The JSON text of `value`; its strings may hold any characters. */
export const toJsonb = (value: unknown): string => sanitizeJson(JSON.stringify(value))

/** {@link toJsonb} of what `schema` encodes. */
export const jsonbOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const encode = Schema.encodeSync(schema)
  return (value: A): string => toJsonb(encode(value))
}

/** The ISO text of the time `moment`, with milliseconds, for JSON that a statement makes. */
export const isoTime = (sql: SqlClient.SqlClient, moment: Fragment): Fragment =>
  sql`to_char(${moment} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
