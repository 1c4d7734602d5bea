/** Reads a provider's JSON by hand, because decoding each token with a schema would be too slow. */

import * as Either from "effect/Either"
import * as Json from "../../domain/Json.ts"

export type WireObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is WireObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The object in the JSON `text`, or null when it is anything else. Strings are not cleaned: one may end in half of a
 * surrogate pair whose other half comes with the next frame.
 */
export const parseObject = (text: string): WireObject | null => {
  const value: unknown = Either.getOrNull(Json.parsePiece(text))
  return isObject(value) ? value : null
}

export const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined

/** A token count, or null when the provider sent none. */
export const countOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null
