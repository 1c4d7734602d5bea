/** Encodes values for `jsonb`. PostgreSQL refuses NUL and lone surrogates, which cut texts may contain. */
import * as Schema from "effect/Schema"
import { sanitizeJson } from "../domain/Text.ts"

/** The JSON text of `value`; its strings may hold any characters. */
export const toJsonb = (value: unknown): string => sanitizeJson(JSON.stringify(value))

/** {@link toJsonb} of what `schema` encodes. */
export const jsonbOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const encode = Schema.encodeSync(schema)
  return (value: A): string => toJsonb(encode(value))
}
