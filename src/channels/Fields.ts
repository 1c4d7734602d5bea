/**
 * Reads providers' payloads leniently, because providers change them: a field with an unexpected form counts as
 * missing, so that one invalid item does not affect the others. Strings are free of NUL and lone surrogates.
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { OutboxId } from "../domain/Ids.ts"
import { sanitize } from "../domain/Text.ts"

export type Fields = Readonly<Record<string, unknown>>

/** Maximum length of an id. Longer ones do not occur, and would not fit into an index. */
const maxIdCharacters = 512

/** The range of plausible timestamps. */
const [earliest, latest] = [DateTime.unsafeMake("2004-01-01"), DateTime.unsafeMake("2200-01-01")]

/** The members of an object; none for any other value. */
export const fieldsOf = (value: unknown): Fields => (Predicate.isRecord(value) ? value : {})

/** An id or a name: trimmed, not empty, at most `maxCharacters` characters. Some providers send ids as numbers. */
export const identifierOf = (value: unknown, maxCharacters = maxIdCharacters): string | undefined => {
  const text = Number.isSafeInteger(value) ? String(value) : value
  if (typeof text !== "string") return undefined
  const word = sanitize(text).trim()
  return word === "" || word.length > maxCharacters ? undefined : word
}

/** The text of a message; empty if there is none. */
export const textOf = (value: unknown): string => (typeof value === "string" ? sanitize(value).trim() : "")

const decimal = /^\d{1,16}(?:\.\d{1,16})?$/

const numeric = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && decimal.test(value)) ? Number(value) : Number.NaN

/**
 * A timestamp in units of `unit` milliseconds since 1970, as number or string; `otherwise` if it is missing or
 * implausible.
 */
export const timestampOf = (value: unknown, unit: 1 | 1_000, otherwise: DateTime.Utc): DateTime.Utc =>
  DateTime.make(numeric(value) * unit).pipe(
    Option.map(DateTime.toUtc),
    Option.filter(DateTime.between({ minimum: earliest, maximum: latest })),
    Option.getOrElse(() => otherwise)
  )

/** An object with `value` under `name`, or without the member if `value` is undefined. */
export const member = <const K extends string, A>(
  name: K,
  value: A | undefined
): { readonly [P in K]?: A } | Record<never, never> => (value === undefined ? {} : { [name]: value })

/** Our references are `out_…`. Other opaque data belongs to other senders. */
export const outboxIdOf = (value: unknown): OutboxId | null => {
  const word = identifierOf(value, 100)
  return word !== undefined && /^out_[0-9a-z]{26}$/.test(word) ? OutboxId.make(word) : null
}
