/**
 * Parses and decodes JSON from outside. The depth is bounded, and characters that the stores do not accept are removed.
 * Walking or writing a parsed value cannot overflow the stack.
 */
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { mapJson } from "./JsonValue.ts"
import { type JsonValue, hasUnstorable, sanitize } from "./Text.ts"

/** Default maximum depth of nested objects and arrays. */
export const maxJsonDepth = 64

/** Why a text is not valid JSON, in words for its sender. */
export class JsonProblem extends Schema.TaggedError<JsonProblem>()("JsonProblem", {
  reason: Schema.Literal("malformed", "too-deep"),
  message: Schema.String
}) {}

const malformed = new JsonProblem({ reason: "malformed", message: "it is not valid JSON" })
const tooDeep = (maxDepth: number) =>
  new JsonProblem({ reason: "too-deep", message: `it is nested more than ${maxDepth} levels deep` })

/** True when objects and arrays in `value` are nested more than `depth` deep. */
const isDeeper = (value: unknown, depth: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (depth === 0 || Object.values(value).some((member) => isDeeper(member, depth - 1)))

const clean = (value: JsonValue): JsonValue => mapJson(value, { text: sanitize, name: sanitize })

/**
 * The value of `text`, nested at most `maxDepth` deep, with strings unchanged. For chunks of a stream, whose strings may
 * begin or end within a surrogate pair: the caller has to {@link sanitize} them after joining them.
 */
export const parsePiece = (
  text: string,
  maxDepth: number = maxJsonDepth
): Either.Either<JsonValue, JsonProblem> => {
  let value: JsonValue
  try {
    value = JSON.parse(text)
  } catch {
    return Either.left(malformed)
  }
  return isDeeper(value, maxDepth) ? Either.left(tooDeep(maxDepth)) : Either.right(value)
}

/**
 * The value of `text`, nested at most `maxDepth` deep. NUL and lone surrogates are removed from strings and names. A
 * number that a double cannot hold becomes infinite.
 */
export const parse = (
  text: string,
  maxDepth: number = maxJsonDepth
): Either.Either<JsonValue, JsonProblem> => {
  const value = parsePiece(text.toWellFormed(), maxDepth)
  // The JSON text itself can contain neither; only escapes can.
  return hasUnstorable(text) ? Either.map(value, clean) : value
}

/** A string, whose contents stay, or a number. The closing quote is optional, so that the search takes linear time. */
const stringOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs
/** The shortest integer that a double may not hold has 16 digits. */
const longInteger = /^-?[1-9]\d{15,}$/

/** Whether `text` is an integer of JSON that a double may not hold. */
export const isLongInteger = (text: string): boolean =>
  longInteger.test(text) && !Number.isSafeInteger(Number(text))

/** {@link parse}. Integers that a double may not hold, such as long ids, become strings with all their digits. */
export const parseExactly = (text: string): Either.Either<JsonValue, JsonProblem> => {
  const value = parse(text)
  if (Either.isLeft(value) || !/\d{16}/.test(text)) return value
  return parse(text.replace(stringOrNumber, (token) => (isLongInteger(token) ? `"${token}"` : token)))
}

/** Canonical JSON: the same text for the same value, regardless of the order of its members. */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (!Predicate.isRecord(value)) return JSON.stringify(value) ?? "null"
  const members = Object.keys(value)
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
  return `{${members.join(",")}}`
}

/** The members of `given` whose values differ from the defaults. */
export const changedMembers = <A extends object>(given: A, defaults: A): Partial<A> => {
  const changed: Partial<A> = { ...given }
  for (const name in given) if (canonical(given[name]) === canonical(defaults[name])) delete changed[name]
  return changed
}

/** Returns a string as it is, and any other value as JSON. */
export const toText = (value: JsonValue): string =>
  typeof value === "string" ? value : JSON.stringify(value)

/** The member names of a JSON pointer (RFC 6901). */
export const segmentsOf = (pointer: string): ReadonlyArray<string> =>
  pointer
    .slice(1)
    .split("/")
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"))

/** Collecting issues takes time for each invalid value, so that a long list of them would occupy the process. */
const maxValuesWithAllIssues = 256

/** Whether `input` contains at most `maxValuesWithAllIssues` values, nested ones included. */
const isSmall = (input: unknown): boolean => {
  const unread = [input]
  for (let count = 1; unread.length > 0;) {
    const value = unread.pop()
    if (typeof value !== "object" || value === null) continue
    const members = Object.values(value)
    count += members.length
    if (count > maxValuesWithAllIssues) return false
    unread.push(...members)
  }
  return true
}

/** Decodes with `schema`. Fails with all issues of a small input, else with the first one. */
export const decodeUnknown = <A, I, R>(
  schema: Schema.Schema<A, I, R>,
  options: { readonly onExcessProperty?: "error" } = {}
) => {
  const decode = Schema.decodeUnknown(schema)
  return (input: unknown) => decode(input, { ...options, errors: isSmall(input) ? "all" : "first" })
}
