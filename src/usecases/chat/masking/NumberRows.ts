/** Rows of digits in a text: what separators join may be one number or several in sequence. */

/** A run of adjacent digits. */
export interface Group {
  readonly start: number
  readonly end: number
  readonly digits: string
  /** The separator before it in the same row; empty for the first group. */
  readonly gap: string
}

export type Groups = ReadonlyArray<Group>

/** Separators between the groups of one number. */
const gapOfNumber = /^(?:[ \u00a0\u202f]?[-./()\u2010-\u2013\u202f\u00a0 ][ \u00a0(]?)$/u
const maxGap = 3

/** Number of groups, or of their examined positions, after which a search lets its caller pause. */
export const groupsPerPause = 2_000

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** The rows of `text` with at least `minLength` digits, and null where the caller may pause. */
export function* rowsOf(text: string, minLength: number): Generator<Groups | null, void> {
  let groups: Array<Group> = []
  let length = 0
  let end = 0
  let count = 0
  for (let at = 0; at < text.length;) {
    if (!isDigit(text.charCodeAt(at))) {
      at++
      continue
    }
    const start = at
    while (at < text.length && isDigit(text.charCodeAt(at))) at++
    const gap = groups.length > 0 && start - end <= maxGap ? text.slice(end, start) : ""
    const isJoined = gap !== "" && (gap === " " || gapOfNumber.test(gap))
    if (!isJoined && groups.length > 0) {
      if (length >= minLength) yield groups
      groups = []
      length = 0
    }
    groups.push({ start, end: at, digits: text.slice(start, at), gap: isJoined ? gap : "" })
    length += at - start
    end = at
    if (++count % groupsPerPause === 0) yield null
  }
  if (length >= minLength) yield groups
}

const isDayAndMonth = (one: number, other: number): boolean =>
  one >= 1 && other >= 1 && Math.max(one, other) <= 31 && Math.min(one, other) <= 12

const isYear = ({ digits }: Group): boolean => /^(?:1[89]|2[01])\d\d$/.test(digits)
const isShort = ({ digits }: Group): boolean => digits.length <= 2

/** A date with a year of two digits may also be a part of a number, such as `0475/12.11.56`. */
type FoundDate = "none" | "unsure" | "sure"

export const dateAt = (groups: Groups, at: number): FoundDate => {
  const first = groups[at]
  const second = groups[at + 1]
  const third = groups[at + 2]
  if (first === undefined || second === undefined || third === undefined || !isShort(second)) return "none"
  const { gap } = second
  // What the same separator joins to digits before is a part of something longer.
  if (third.gap !== gap || (at > 0 && first.gap === gap) || !/^[./-] ?$/.test(gap)) return "none"
  const [one, two, three] = [Number(first.digits), Number(second.digits), Number(third.digits)]
  if (isYear(first)) return isShort(third) && isDayAndMonth(two, three) ? "sure" : "none"
  if (!isShort(first) || !isDayAndMonth(one, two)) return "none"
  if (isYear(third)) return "sure"
  const fourth = groups[at + 3]
  // Ten digits in pairs are a French number.
  const isPairs = fourth?.gap === gap && fourth.digits.length === 2
  return third.digits.length === 2 && !isPairs ? "unsure" : "none"
}

/** True for an IPv4 address. One with a leading zero is a phone number, unless all parts have three digits. */
const isIpAddress = (groups: Groups, at: number): boolean => {
  const four = groups.slice(at, at + 4)
  if (four.length < 4 || groups[at + 4]?.gap === "." || (at > 0 && four[0]?.gap === ".")) return false
  const isPadded = four.every(({ digits }) => digits.length === 3)
  return four.every(
    ({ digits, gap }, index) =>
      Number(digits) <= 255 && (isPadded || !/^0\d/.test(digits)) && (index === 0 || gap === ".")
  )
}

/** True for a time range, such as `08.00-12.30`. */
const isTimeRange = (groups: Groups, at: number): boolean => {
  const [from, minutes, to, last] = groups.slice(at, at + 4)
  if (from === undefined || minutes?.gap !== "." || to === undefined || last?.gap !== ".") return false
  const isTime = (hour: Group, minute: Group) =>
    isShort(hour) && Number(hour.digits) <= 24 && minute.digits.length === 2 && Number(minute.digits) <= 59
  return /^ ?[-\u2010-\u2013] ?$/u.test(to.gap) && isTime(from, minutes) && isTime(to, last)
}

/** Number of groups from `at` on that are a date, a time range or an IP address; 0 if they are none. */
export const nonNumberGroups = (groups: Groups, at: number): number => {
  const next = groups[at + 1]?.gap ?? ""
  if (next === "" || !".-/".includes(next.charAt(0))) return 0
  if (next === "." && (isIpAddress(groups, at) || isTimeRange(groups, at))) return 4
  return dateAt(groups, at) === "none" ? 0 : 3
}
