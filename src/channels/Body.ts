/** The JSON of a delivery whose signature has been checked, as it can be stored. */
import * as Option from "effect/Option"
import { sanitize } from "../domain/Text.ts"

/** Objects and arrays within each other; providers use ten. */
const depthLimit = 64

/** What JSON can smuggle into text: NUL, and halves of surrogate pairs. */
const suspicious = /\\u(?:0000|d[89a-f])/i

class TooDeep extends Error {}

const cleaned = (value: unknown, depth: number): unknown => {
  if (typeof value === "string") return sanitize(value)
  if (typeof value !== "object" || value === null) return value
  if (depth === 0) throw new TooDeep()
  if (Array.isArray(value)) return value.map((item) => cleaned(item, depth - 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [sanitize(name), cleaned(item, depth - 1)])
  )
}

const isDeeper = (value: unknown, depth: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (depth === 0 || Object.values(value).some((item) => isDeeper(item, depth - 1)))

const read = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  if (suspicious.test(text)) return cleaned(value, depthLimit)
  if (isDeeper(value, depthLimit)) throw new TooDeep()
  return value
}

/** The value without NUL and lone surrogates; none when `body` is no JSON, or nested too deeply. */
export const parse = (body: Uint8Array): Option.Option<unknown> =>
  Option.liftThrowable(read)(new TextDecoder().decode(body))
