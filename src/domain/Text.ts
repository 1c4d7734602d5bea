/** Text that every store can hold. PostgreSQL refuses NUL, and UTF-8 has no lone surrogates. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as Plain from "./JsonValue.ts"
import type { JsonValue } from "./JsonValue.ts"

// oxlint-disable-next-line no-control-regex -- NUL is what is being removed
const NUL = /\u0000/g

/** Drops NUL and replaces lone surrogates with U+FFFD, so that any input can be stored. */
export const sanitize = (text: string): string => text.replace(NUL, "").toWellFormed()

// oxlint-disable-next-line no-control-regex -- escape sequences begin with them
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Text for a terminal, which would obey escape sequences in it. Keeps tabs and line feeds. */
export const withoutControls = (text: string): string => text.replace(controls, "")

/** A fixed message for the annotations of a schema. */
export const withMessage = (message: string) => ({ message: () => message })

/** A string from which NUL and lone surrogates were removed. */
export const Text = Schema.transform(Schema.String, Schema.String, {
  strict: true,
  decode: sanitize,
  encode: (text) => text
})

/**
 * `schema` with a description in its JSON Schema. The annotation `description` of a filter would also be the expectation
 * in its error messages.
 */
export const described = <A, I, R>(
  schema: Schema.Schema<A, I, R>,
  description: string
): Schema.Schema<A, I, R> =>
  schema.annotations({
    jsonSchema: {
      ...Option.getOrElse(SchemaAST.getJSONSchemaAnnotation(schema.ast), () => ({})),
      description
    }
  })

/** Characters as JSON Schema counts them: a pair of surrogates is one. */
const hasAtMost = (max: number) => (text: string) =>
  text.length <= max || (text.length <= 2 * max && Array.from(text).length <= max)

const tooLong = (max: number) => withMessage(`Expected a string of at most ${max} characters`)

/** {@link Text} of at most `max` characters. */
export const atMost = (max: number) =>
  Text.pipe(Schema.filter(hasAtMost(max), tooLong(max))).annotations({
    jsonSchema: { type: "string", maxLength: max }
  })

/** {@link Text} of 1 to `max` characters. */
export const bounded = (max: number) =>
  Text.pipe(Schema.minLength(1), Schema.filter(hasAtMost(max), tooLong(max))).annotations({
    jsonSchema: { type: "string", minLength: 1, maxLength: max }
  })

/** {@link Text} without surrounding white space, 1 to `max` characters. `description` goes to its JSON Schema. */
export const trimmed = (max: number, description?: string) =>
  Text.pipe(
    Schema.compose(Schema.Trim),
    Schema.minLength(1),
    Schema.filter(hasAtMost(max), tooLong(max))
  ).annotations({
    jsonSchema: { type: "string", minLength: 1, maxLength: max, ...(description && { description }) }
  })

const unstorableEscape = /\\u(?:0000|d[89a-f])/i

/** Whether JSON text has escapes for NUL or for halves of surrogate pairs. */
export const hasUnstorable = (json: string): boolean =>
  // Most texts have no such escape, and `includes` finds that out faster than the pattern.
  json.includes("\\u") && unstorableEscape.test(json)

/** One escape in JSON text: NUL, half of a surrogate pair, or any other. */
const escapes = /\\(?:(u0000)|(ud[89a-f][0-9a-f]{2})|.)/gi

/**
 * Removes NUL and lone surrogates from JSON text written by `JSON.stringify`. That writes whole pairs as they are, so
 * an escaped half is a lone one.
 */
export const sanitizeJson = (json: string): string =>
  hasUnstorable(json)
    ? json.replace(escapes, (escape, nul, half) =>
        nul !== undefined ? "" : half === undefined ? escape : "\\ufffd"
      )
    : json

const depthLimit = 64

const isJson = (value: unknown, depth: number): value is JsonValue => {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true
  if (typeof value === "number") return Number.isFinite(value)
  if (typeof value !== "object" || depth === 0) return false
  return Object.values(value).every((member) => isJson(member, depth - 1))
}

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) && isJson(value, depthLimit)

export type { JsonValue }
export type JsonObject = Plain.JsonObject

/** A JSON object of strings, finite numbers, booleans, null, arrays and objects, nested at most 64 deep. */
export const JsonObject: Schema.Schema<JsonObject> = Schema.declare(isJsonObject, {
  identifier: "JsonObject",
  description: "a JSON object",
  jsonSchema: { type: "object", additionalProperties: true },
  message: () => "Expected a JSON object of strings, finite numbers, booleans, null, arrays and objects"
})

/** The ASCII digit for a decimal digit (`\p{Nd}`) of any script. The ten digits of a script have consecutive codes. */
export const asciiDigit = (digit: string): string => {
  const code = digit.codePointAt(0) ?? 0
  let value = 0
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++
  return String(value)
}
