/** Reading a provider's JSON by hand: a schema's decode for each token would cost more than the token. */

import * as Either from "effect/Either"
import * as Json from "../../domain/Json.ts"

export type WireObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is WireObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The object that `text` is the JSON of, or null when it is anything else. Its texts are as they were sent: one may end in
 * half of a character whose other half comes with the next frame.
 */
export const parseObject = (text: string): WireObject | null => {
  const value: unknown = Either.getOrNull(Json.parsePiece(text))
  return isObject(value) ? value : null
}

export const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined

/** The members of an array; of anything else, none. */
export const itemsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** A count of tokens, or null when the provider sent none. */
export const countOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null
