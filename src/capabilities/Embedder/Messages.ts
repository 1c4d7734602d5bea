/** Messages to and from the embedding thread. */
import { types } from "node:util"
import * as Schema from "effect/Schema"

export const Job = Schema.Struct({
  id: Schema.Int,
  /** Texts are never empty. */
  texts: Schema.Array(Schema.String)
})
export type Job = typeof Job.Type

export const Answer = Schema.Union(
  /** All vectors, concatenated. */
  Schema.TaggedStruct("Embedded", {
    id: Schema.Int,
    vectors: Schema.declare((value): value is Float32Array => types.isFloat32Array(value))
  }),
  Schema.TaggedStruct("Failed", { id: Schema.Int })
)
export type Answer = typeof Answer.Type
