import * as Schema from "effect/Schema"

/** A field that may be missing. It is never undefined. */
export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A field that may be missing; its value is then `value()`. */
export const withDefault = <A, I>(schema: Schema.Schema<A, I>, value: () => NoInfer<A>) =>
  Schema.optionalWith(schema, { exact: true, default: value })

/** A field of a PATCH that may be omitted. Null stands for `value`, the default. */
export const nullable = <A, I>(schema: Schema.Schema<A, I>, value: () => NoInfer<A>) =>
  optional(
    Schema.transform(Schema.NullOr(schema), Schema.typeSchema(schema), {
      strict: true,
      decode: (given) => given ?? value(),
      encode: (given) => given
    })
  )
