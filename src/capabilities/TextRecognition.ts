/**
 * Reads text in images (optical character recognition). The type is detected from the bytes. A malicious image fails
 * only its own reading.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const RecognitionErrorCode = Schema.Literal(
  "unsupported_type",
  "malformed",
  "too_large",
  "timed_out",
  "out_of_memory"
)

/** `message` is for the customer: what is wrong with the image and how to fix it. */
export class RecognitionError extends Schema.TaggedError<RecognitionError>()("RecognitionError", {
  code: RecognitionErrorCode,
  message: Schema.String
}) {}

export class TextRecognition extends Context.Tag("capabilities/TextRecognition")<
  TextRecognition,
  {
    /** The media type of a supported image, by its first bytes; undefined for everything else. */
    readonly mediaType: (bytes: Uint8Array) => string | undefined
    /**
     * The text in the image's first frame or page, with its lines; empty when there is none. One image at a time.
     * Interruption stops the work at once.
     */
    readonly recognize: (bytes: Uint8Array) => Effect.Effect<string, RecognitionError>
  }
>() {}
