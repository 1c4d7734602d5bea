/**
 * Reading what a provider sends as leniently as it changes: a field of another form counts as left out, so that one broken
 * item never loses the others. Texts that are read have no NUL and no lone surrogates.
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { OutboxId } from "../domain/Ids.ts"
import { sanitize } from "../domain/Text.ts"

export type Fields = Readonly<Record<string, unknown>>

/** Longer ids do not occur, and would not fit into an index. */
const maxIdCharacters = 512

/** No provider's clock goes beyond these. */
const [earliest, latest] = [DateTime.unsafeMake("2004-01-01"), DateTime.unsafeMake("2200-01-01")]

/** The members of an object; none of anything else. */
export const fieldsOf = (value: unknown): Fields => (Predicate.isRecord(value) ? value : {})

/** The items of an array; none of anything else. */
export const itemsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** An id or a name: trimmed, not empty, not longer than `longest`. Some ids are sent as numbers. */
export const wordOf = (value: unknown, longest = maxIdCharacters): string | undefined => {
  const text = Number.isSafeInteger(value) ? String(value) : value
  if (typeof text !== "string") return undefined
  const word = sanitize(text).trim()
  return word === "" || word.length > longest ? undefined : word
}

/** The text of a message; empty without one. */
export const proseOf = (value: unknown): string => (typeof value === "string" ? sanitize(value).trim() : "")

const decimal = /^\d{1,16}(?:\.\d{1,16})?$/

const numeric = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && decimal.test(value)) ? Number(value) : Number.NaN

/** A stamp of `unit` milliseconds since 1970, also as text; `otherwise` where there is none to be believed. */
export const momentOf = (value: unknown, unit: 1 | 1_000, otherwise: DateTime.Utc): DateTime.Utc =>
  DateTime.make(numeric(value) * unit).pipe(
    Option.map(DateTime.toUtc),
    Option.filter(DateTime.between({ minimum: earliest, maximum: latest })),
    Option.getOrElse(() => otherwise)
  )

/** `value` under `name`; no member at all when there is none. */
export const member = <const K extends string, A>(
  name: K,
  value: A | undefined
): { readonly [P in K]?: A } | Record<never, never> => (value === undefined ? {} : { [name]: value })

/** Our references are `out_…`; other opaque data belongs to other senders. */
export const outboxIdOf = (value: unknown): OutboxId | null => {
  const word = wordOf(value, 100)
  return word !== undefined && /^out_[0-9a-z]{26}$/.test(word) ? OutboxId.make(word) : null
}
