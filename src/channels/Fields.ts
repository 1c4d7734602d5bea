/**
 * Reads providers' payloads leniently, because providers change them: a field with an unexpected form counts as
 * missing, so that one invalid item does not affect the others. Strings are free of NUL and lone surrogates.
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type { InboundMedia } from "../domain/channels/Channel.ts"
import { OutboxId } from "../domain/Ids.ts"
import { sanitize } from "../domain/Text.ts"

export type Fields = Readonly<Record<string, unknown>>

/** Maximum length of an id. Longer ones do not occur, and would not fit into an index. */
const maxIdCharacters = 512
/** Maximum length of the id of an account. */
export const maxAccountIdCharacters = 128
/** Maximum length of an alias of a contact. */
export const maxAliasCharacters = 256

/** The range of plausible timestamps. */
const [earliest, latest] = [DateTime.unsafeMake("2004-01-01"), DateTime.unsafeMake("2200-01-01")]

/** The members of an object; none for any other value. */
export const fieldsOf = (value: unknown): Fields => (Predicate.isRecord(value) ? value : {})

/**
 * An id, a name or another short text: trimmed, not empty, at most `maxCharacters` characters. Undefined for anything
 * else. Some providers send ids as numbers.
 */
export const identifierOf = (value: unknown, maxCharacters = maxIdCharacters): string | undefined => {
  const text = Number.isSafeInteger(value) ? String(value) : value
  if (typeof text !== "string") return undefined
  const trimmed = sanitize(text).trim()
  return trimmed === "" || trimmed.length > maxCharacters ? undefined : trimmed
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

/** `{ [name]: value }`, or an empty object if `value` is undefined. */
export const optionalMember = <const K extends string, A>(
  name: K,
  value: A | undefined
): { readonly [P in K]?: A } | Record<never, never> => (value === undefined ? {} : { [name]: value })

/** A position as `(latitude, longitude)`; empty if one of them is not a number. */
export const coordinatesOf = (latitude: unknown, longitude: unknown): string =>
  Number.isFinite(latitude) && Number.isFinite(longitude) ? `(${String(latitude)}, ${String(longitude)})` : ""

/** The kind of a file of this MIME type. */
export const mediaKindOf = (mimeType = ""): InboundMedia["kind"] => {
  const [family] = mimeType.split("/")
  return family === "image" || family === "video" || family === "audio" ? family : "document"
}

/** The outbox id in opaque data that a provider returns; null for data of another sender. */
export const outboxIdOf = (value: unknown): OutboxId | null => {
  const id = identifierOf(value, 100)
  return id !== undefined && /^out_[0-9a-z]{26}$/.test(id) ? OutboxId.make(id) : null
}
