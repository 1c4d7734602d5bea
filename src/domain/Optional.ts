import * as Schema from "effect/Schema"

/** A field that may be missing. It is never undefined. */
export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A field that may be missing. It is then `value`. */
export const withDefault = <A, I>(schema: Schema.Schema<A, I>, value: () => NoInfer<A>) =>
  Schema.optionalWith(schema, { exact: true, default: value })
