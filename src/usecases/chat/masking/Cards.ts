/** Payment-card numbers. */
import type { Groups } from "./NumberRows.ts"

const isLuhn = (digits: string): boolean => {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits.charAt(digits.length - 1 - index))
    const doubled = index % 2 === 0 ? digit : digit * 2
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** Prefixes and lengths of the numbers that card networks issue. */
const networks = [
  /^4(?:\d{12}|\d{15}|\d{18})$/,
  /^(?:5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}$/,
  /^3[47]\d{13}$/,
  /^3(?:0[0-5]|[689]\d)\d{11}(?:\d{2})?$/,
  /^35\d{14}$/,
  /^6(?:011|[45]\d{2}|2\d{2})\d{12,15}$/,
  /^(?:50|5[6-8]|6[0-9])\d{11,17}$/
]

const minCardDigits = 13
const maxCardDigits = 19
/** Minimum digits of each group of a card number but the last. */
const minGroupDigits = 3

const isCard = (digits: string): boolean =>
  digits.length >= minCardDigits && isLuhn(digits) && networks.some((network) => network.test(digits))

const cardGap = /^[ \u00a0\u202f.\u2010-\u2013-]{1,2}$/u

/**
 * The last group of the card number that begins at `from`; -1 if none begins there. A card number that may be complete
 * ends before a group for which `ends` is true.
 */
export const cardAt = (groups: Groups, from: number, ends: (at: number) => boolean): number => {
  const first = groups[from]?.digits ?? ""
  if (first.length < minGroupDigits || !/^[2-6]/.test(first)) return -1
  let digits = ""
  let longest = -1
  for (let to = from; to < groups.length; to++) {
    const group = groups[to]
    if (group === undefined || (to > from && !cardGap.test(group.gap))) break
    if (longest >= 0 && ends(to)) break
    digits += group.digits
    if (digits.length > maxCardDigits) break
    if (isCard(digits)) longest = to
    if (group.digits.length < minGroupDigits) break
  }
  return longest
}
