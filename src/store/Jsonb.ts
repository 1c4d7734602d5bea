/** Values as `jsonb` takes them. It refuses NUL and halves of surrogate pairs, which texts may hold that others have cut. */
import * as Schema from "effect/Schema"
import { sanitizeJson } from "../domain/Text.ts"

/** The JSON text of `value`; its strings may hold any characters. */
export const toJsonb = (value: unknown): string => sanitizeJson(JSON.stringify(value))

/** {@link toJsonb} of what `schema` encodes. */
export const jsonbOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const encode = Schema.encodeSync(schema)
  return (value: A): string => toJsonb(encode(value))
}
