/** Sources whose content is in their config: a text, or questions with their answers. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { SourceMetadata } from "./SourceMetadata.ts"
import { atMost, trimmed } from "../Text.ts"

/** Maximum number of characters of one source. With its JSON it fits the body of a request. */
const maxLength = 200_000
const maxPairs = 500
const maxQuestionLength = 500
const maxAnswerLength = 4_000

const metadata = optional(SourceMetadata)

export const TextConfig = Schema.Struct({
  text: atMost(maxLength).pipe(
    Schema.filter((text) => text.trim() !== "", { message: () => "Expected a text that is not empty" })
  ),
  /** Default: `markdown`. Plain text has no headings, lists and tables. */
  format: optional(Schema.Literal("markdown", "text")),
  metadata
})

/** A question and its answer, which is Markdown. */
export const QaPair = Schema.Struct({
  question: trimmed(maxQuestionLength),
  answer: trimmed(maxAnswerLength)
})
export type QaPair = typeof QaPair.Type

const lengthOf = (pairs: ReadonlyArray<QaPair>) =>
  pairs.reduce((sum, { answer, question }) => sum + Array.from(question + answer).length, 0)

export const QaConfig = Schema.Struct({
  pairs: Schema.Array(QaPair).pipe(
    Schema.minItems(1, { message: () => "Expected at least one pair" }),
    Schema.maxItems(maxPairs, { message: () => `Expected at most ${maxPairs} pairs` }),
    Schema.filter((pairs) => lengthOf(pairs) <= maxLength, {
      message: () => `Expected at most ${maxLength} characters in all pairs together`
    })
  ),
  metadata
})
