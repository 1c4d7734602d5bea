/** Registered readers for sources: their list, and the form of their settings. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { Text } from "../Text.ts"

/** A reader's name in the configs of sources. */
export const ReaderName = Text.pipe(
  Schema.pattern(/^[a-z][a-z0-9-]{0,63}$/, {
    message: () => "Expected the name of a reader: lower-case letters, digits and -"
  })
)

/** A text for people, in English and optionally in German. */
export const Words = Schema.Struct({ en: Schema.String, de: optional(Schema.String) })
export type Words = typeof Words.Type

/** One setting of a form. */
export const FormField = Schema.Struct({
  name: Schema.String,
  /** `list` is an array of texts; `secret` is sealed and never returned. */
  kind: Schema.Literal("text", "secret", "number", "switch", "choice", "list"),
  required: Schema.Boolean,
  label: Words,
  hint: optional(Words),
  choices: optional(Schema.Array(Schema.String))
})
export type FormField = typeof FormField.Type

/** A registered reader and its form in the dashboard. */
export const ReaderForm = Schema.Struct({
  name: ReaderName,
  title: Words,
  description: Words,
  fields: Schema.Array(FormField)
})
export type ReaderForm = typeof ReaderForm.Type
