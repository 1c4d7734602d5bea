/** Finds e-mail addresses in a text. No character is read more than a bounded number of times. */
import type { DetectedValue } from "./DetectedValue.ts"
import { inAscii, unspacedLetter } from "./Scripts.ts"

/** Maximum characters of an address before and after its `@`. */
const maxLocal = 256
const maxDomain = 253

const localCharacter = /[\p{L}\p{M}\p{N}._%+'~-]/u
const domainCharacter = /[\p{L}\p{M}\p{N}.-]/u
/** File names of high-resolution pictures look like addresses: `logo@2x.png`. */
const fileEnding = /\.(?:avif|gif|jpe?g|pdf|png|svg|webp)$/iu
/** Places where a domain may end. */
const domainEnding = /\.(?:xn--[a-z0-9-]+|\p{L}[\p{L}\p{M}]+)(?![\p{L}\p{M}])/giu

/** True for a domain with a wrong ending, such as `example.c0m`. A version such as `1.2.3` is none. */
const isWrongDomain = (domain: string): boolean => {
  const labels = domain.split(".")
  return labels.length > 1 && /^\p{L}/u.test(domain) && /\p{L}/u.test(labels.at(-1) ?? "")
}

const lengthWithout = (characters: string, text: string): number => {
  let { length } = text
  while (length > 0 && characters.includes(text.charAt(length - 1))) length--
  return length
}

/**
 * Number of characters of the domain that `text` begins with; 0 if there is none. Text may be glued to a domain
 * (`example.com-thanks`): the longest part that ends like a domain is taken.
 */
const domainLength = (text: string): number => {
  const cut = text.indexOf("..")
  const domain = cut < 0 ? text : text.slice(0, cut)
  if (!domain.includes(".", 1) || domain.startsWith(".")) return 0
  let length = 0
  for (const { 0: ending, index } of domain.matchAll(domainEnding)) length = index + ending.length
  const found = domain.slice(0, length)
  if (length > 0) return fileEnding.test(found) ? 0 : lengthWithout("-", found)
  const whole = domain.slice(0, lengthWithout(".-", domain))
  return isWrongDomain(whole) ? whole.length : 0
}

/** True between ASCII letters and digits, and words of a script without spaces. */
const isBoundary = (text: string, at: number): boolean => {
  const before = text.charAt(at - 1)
  const after = text.charAt(at)
  return (
    (unspacedLetter.test(before) && /[a-z0-9]/i.test(after)) ||
    (/[a-z0-9]/i.test(before) && unspacedLetter.test(after))
  )
}

/** The address around the sign from `sign` to `after`. Nothing before `floor` belongs to it. */
const addressAround = (text: string, sign: number, after: number, floor: number): DetectedValue | null => {
  let start = sign
  const first = Math.max(floor, sign - maxLocal)
  while (start > first && localCharacter.test(text.charAt(start - 1)) && !isBoundary(text, start)) start--
  while (start < sign && /[.'~-]/u.test(text.charAt(start))) start++
  if (start === sign) return null
  let last = after
  const limit = Math.min(text.length, after + maxDomain)
  while (last < limit && domainCharacter.test(text.charAt(last)) && !isBoundary(text, last)) last++
  const length = domainLength(text.slice(after, last))
  return length === 0 ? null : { kind: "email", start, end: after + length }
}

export const findEmails = (given: string): ReadonlyArray<DetectedValue> => {
  const text = inAscii(given)
  const found: Array<DetectedValue> = []
  let floor = 0
  for (const { 0: sign, index } of text.matchAll(/@|%40/gu)) {
    const after = index + sign.length
    const address = addressAround(text, index, after, floor)
    if (address !== null) found.push(address)
    floor = after
  }
  return found
}
