/** Messages to and from the recognition's worker thread. */
import * as Schema from "effect/Schema"

export const Job = Schema.Struct({
  bytes: Schema.Uint8ArrayFromSelf,
  /** Images with more pixels are not read. */
  maxPixels: Schema.Number
})
export type Job = typeof Job.Type

export const Answer = Schema.Union(
  /** `confidence` is from 0 to 100. */
  Schema.TaggedStruct("Read", { text: Schema.String, confidence: Schema.Number }),
  Schema.TaggedStruct("Failed", {}),
  /** Before it was decoded. */
  Schema.TaggedStruct("Refused", { code: Schema.Literal("unsupported_type", "malformed", "too_large") }),
  /** The packages are not installed. */
  Schema.TaggedStruct("Missing", {})
)
export type Answer = typeof Answer.Type
