/**
 * Finds e-mail addresses, payment-card numbers and phone numbers in a text. Each position is read a bounded number of
 * times. A library for phone numbers would need a country, which a chat does not give.
 */

export interface DetectedValue {
  readonly kind: string
  readonly start: number
  readonly end: number
}

/** Maximum characters of an address before and after its `@`. */
const maxLocal = 256
const maxDomain = 253

const localCharacter = /[\p{L}\p{M}\p{N}._%+'~-]/u
const domainCharacter = /[\p{L}\p{M}\p{N}.-]/u
/** File names of high-resolution pictures look like addresses: `logo@2x.png`. */
const fileEnding = /\.(?:avif|gif|jpe?g|pdf|png|svg|webp)$/iu
const domainEnding = /\.(?:\p{L}{2,}|xn--[a-z0-9-]+)$/iu

const addressAround = (text: string, sign: number, after: number): DetectedValue | null => {
  let start = sign
  const first = Math.max(0, sign - maxLocal)
  while (start > first && localCharacter.test(text.charAt(start - 1))) start--
  while (start < sign && /[.'~-]/u.test(text.charAt(start))) start++
  let end = after
  const last = Math.min(text.length, after + maxDomain)
  while (end < last && domainCharacter.test(text.charAt(end))) end++
  while (end > after && /[.-]/u.test(text.charAt(end - 1))) end--
  const domain = text.slice(after, end)
  if (start === sign || domain.startsWith(".") || domain.includes("..")) return null
  return domainEnding.test(domain) && !fileEnding.test(domain) ? { kind: "email", start, end } : null
}

export const emails = (text: string): ReadonlyArray<DetectedValue> => {
  const found: Array<DetectedValue> = []
  for (const { 0: sign, index } of text.matchAll(/@|%40/gu)) {
    const address = addressAround(text, index, index + sign.length)
    if (address !== null) found.push(address)
  }
  return found
}

/** A run of adjacent digits. */
interface Group {
  readonly start: number
  readonly end: number
  readonly digits: string
  /** The separator before it in the same row; null for the first group. */
  readonly gap: string | null
}

/** Separators between the groups of one number. */
const gap = /^(?:[ \u00a0\u202f]?[-./()\u2010-\u2013\u202f\u00a0 ][ \u00a0(]?)$/u
const maxGap = 3

/** Rows of groups. A row may be one number or several in sequence. */
const rowsOf = (text: string): ReadonlyArray<ReadonlyArray<Group>> => {
  const rows: Array<Array<Group>> = []
  let end = 0
  for (const { 0: digits, index } of text.matchAll(/[0-9]+/g)) {
    const row = rows.at(-1)
    const between = row === undefined ? null : index - end > maxGap ? null : text.slice(end, index)
    const group = { start: index, end: index + digits.length, digits }
    if (row !== undefined && between !== null && gap.test(between)) row.push({ ...group, gap: between })
    else rows.push([{ ...group, gap: null }])
    end = group.end
  }
  return rows
}

const digitsOf = (groups: ReadonlyArray<Group>): string => groups.map(({ digits }) => digits).join("")

const isLuhn = (digits: string): boolean => {
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits.charAt(digits.length - 1 - place))
    const doubled = place % 2 === 0 ? digit : digit * 2
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

const isCard = (digits: string): boolean =>
  digits.length >= 13 && isLuhn(digits) && networks.some((network) => network.test(digits))

const maxCardDigits = 19

/** The groups of one row that form a number, as positions in the row. */
interface NumberMatch {
  readonly kind: string
  readonly from: number
  readonly to: number
}

const cardGap = /^[ \u00a0\u202f.-]{1,2}$/

/** The card number that begins at `from`, or null. */
const cardAt = (row: ReadonlyArray<Group>, from: number): NumberMatch | null => {
  let digits = ""
  let longest: NumberMatch | null = null
  for (let to = from; to < row.length; to++) {
    const group = row[to]
    if (group === undefined || (to > from && !cardGap.test(group.gap ?? ""))) break
    digits += group.digits
    if (digits.length > maxCardDigits) break
    const isSplit = to === from || row.slice(from, to).every((part) => part.digits.length >= 3)
    if (isSplit && isCard(digits)) longest = { kind: "card", from, to }
  }
  return longest
}

const isDate = (row: ReadonlyArray<Group>, at: number): boolean => {
  const [first, second, third, fourth] = row.slice(at, at + 4)
  if (first === undefined || second === undefined || third === undefined) return false
  if (second.gap !== third.gap || !/^[./-] ?$/.test(second.gap ?? "")) return false
  const lengths = `${first.digits.length} ${second.digits.length} ${third.digits.length}`
  if (/^4 [12] [12]$/.test(lengths)) return true
  // Ten digits in pairs are a French number.
  return (
    (/^[12] [12] 4$/.test(lengths) ||
      (/^[12] [12] 2$/.test(lengths) && !(fourth?.gap === third.gap && fourth?.digits.length === 2))) &&
    Math.min(Number(first.digits), Number(second.digits)) <= 12
  )
}

const isAddressOfNetwork = (row: ReadonlyArray<Group>, at: number): boolean => {
  const four = row.slice(at, at + 4)
  return (
    four.length === 4 &&
    four.every(
      ({ digits, gap: before }, place) => Number(digits) <= 255 && (place === 0 || before === ".")
    ) &&
    row[at + 4]?.gap !== "."
  )
}

/** Characters before a number that are searched for a word that says what it is. */
const contextLength = 32
const says =
  /(?:\btel\b|\btel[.:]|telefon|t[ée]l[ée]phone|phone|mobile?\b|mobil|handy|\bcell|\bcall\b|\bfax|whatsapp|\bsms\b|rufnummer|durchwahl|anruf|rückruf|r[uü]f\w* \w{0,8} ?an|\bmy number|meine nummer|wa\.me\/|tel:)[^0-9\n]{0,20}$/iu
const saysOther =
  /(?:order|bestell|auftrag|rechnung|invoice|ticket|kunde|customer|artikel|article|item|sku|iban|bic|tracking|sendung|paket|parcel|serial|serien|seriennummer|\bref|reference|referenz|\bid\b|\bnr\b|\bno\b|number|nummer|version|#|konto|account|vorgang|case|build|isbn|ean|gtin|contract|vertrag|transaction|transaktion|token|code|zähler|meter|imei|pin)[^0-9\n]{0,14}$/iu
const price = /^[ \u00a0]?(?:€|\$|£|¥|%|eur\b|usd\b|gbp\b|chf\b|euros?\b)|^[,.]\d/iu

const nationalLength = { min: 9, max: 12 }
const internationalLength = { min: 8, max: 15 }

interface Candidate {
  readonly groups: ReadonlyArray<Group>
  readonly digits: string
  readonly hasPlus: boolean
  readonly hasBracket: boolean
  readonly isCalled: boolean
  readonly isOther: boolean
  /** True when digits that are no number by themselves come before it. */
  readonly isContinued: boolean
}

const isInternational = ({ digits, groups, hasPlus, isOther }: Candidate): boolean => {
  const { min, max } = internationalLength
  if (hasPlus) return digits.length >= min && digits.length <= max && !digits.startsWith("0")
  if (!/^00[1-9]/.test(digits)) return false
  return digits.length >= min + 3 && digits.length <= max + 2 && (groups.length > 1 || !isOther)
}

const isNational = ({ digits, groups, isOther }: Candidate): boolean => {
  const { min, max } = nationalLength
  if (!/^0[1-9]/.test(digits) || digits.length > max) return false
  if (groups.length === 1) return digits.length > min && !isOther
  // Three groups with dashes may be an article number as well.
  if (isOther && groups.length > 2 && groups.slice(1).every(({ gap: between }) => between === "-"))
    return false
  const first = groups[0]?.digits.length ?? 0
  return digits.length >= min && first >= 2 && first <= 6
}

/** North American numbers: `(415) 555-2671`, `1-415-555-2671`. */
const isAmerican = ({ groups, hasBracket, isOther }: Candidate): boolean => {
  const own = groups.length === 4 && groups[0]?.digits === "1" ? groups.slice(1) : groups
  const lengths = own.map(({ digits }) => digits.length).join(" ")
  if (lengths !== "3 3 4" || !own.slice(0, 2).every(({ digits }) => /^[2-9]/.test(digits))) return false
  const [first, second] = own.slice(1).map(({ gap: between }) => between?.trim())
  return hasBracket || ((first === second || own.length < groups.length) && !isOther)
}

const isPhone = (candidate: Candidate): boolean => {
  if (candidate.isCalled) {
    const { length } = candidate.digits
    return length >= 6 && length <= internationalLength.max + 2
  }
  if (candidate.isContinued && !candidate.hasPlus) return false
  return isInternational(candidate) || isNational(candidate) || isAmerican(candidate)
}

/** True when the number is part of a longer identifier, such as `AB-030 12345`. */
const isAttached = (text: string, at: number): boolean => {
  const before = text.charAt(at - 1)
  if (/[\p{L}\p{N}_]/u.test(before)) return true
  return /[-./\\#]/u.test(before) && /[\p{L}\p{N}]/u.test(text.charAt(at - 2))
}

const maxPhoneGroups = 8

/** The start of the number, including a `+` or bracket before its first group. */
const beginOf = (text: string, { start }: Group): number => {
  const before = /(?:\(\+?|\+\(?)$/.exec(text.slice(Math.max(0, start - 2), start))
  return start - (before?.[0].length ?? 0)
}

const phoneAt = (
  text: string,
  lead: string,
  row: ReadonlyArray<Group>,
  from: number,
  isContinued: boolean
): NumberMatch | null => {
  const first = row[from]
  if (first === undefined) return null
  const begin = beginOf(text, first)
  const head = text.slice(begin, first.start)
  const context = (lead + text.slice(Math.max(0, begin - contextLength), begin)).slice(-contextLength)
  const isCalled = says.test(context)
  if (isAttached(text, begin) && !isCalled) return null
  let longest: NumberMatch | null = null
  for (let to = from; to < Math.min(row.length, from + maxPhoneGroups); to++) {
    const group = row[to]
    if (
      group === undefined ||
      (to > from && (isDate(row, to) || (/ [-/\u2013] /.test(group.gap ?? "") && to > from + 1)))
    )
      break
    const groups = row.slice(from, to + 1)
    const digits = digitsOf(groups)
    if (digits.length > internationalLength.max + 2) break
    const candidate: Candidate = {
      groups,
      digits,
      hasPlus: head.includes("+"),
      hasBracket: head.includes("("),
      isCalled,
      isContinued,
      isOther: saysOther.test(context) && !isCalled
    }
    const after = text.slice(group.end, group.end + 8)
    if (/^[\p{L}\p{N}_]/u.test(after) || (price.test(after) && !candidate.hasPlus)) continue
    if (isPhone(candidate)) longest = { kind: "phone", from, to }
  }
  return longest
}

const spanOf = (
  text: string,
  row: ReadonlyArray<Group>,
  { from, kind, to }: NumberMatch
): ReadonlyArray<DetectedValue> => {
  const first = row[from]
  const last = row[to]
  if (first === undefined || last === undefined) return []
  const start = kind === "phone" ? beginOf(text, first) : first.start
  return [{ kind, start, end: last.end }]
}

interface Numbers {
  readonly cards: boolean
  readonly phones: boolean
  /** Digits of known numbers with their kind. They are found however they are written. */
  readonly known: ReadonlyMap<string, string>
}

const knownAt = (row: ReadonlyArray<Group>, from: number, known: Numbers["known"]): NumberMatch | null => {
  let digits = ""
  for (let to = from; to < row.length; to++) {
    digits += row[to]?.digits ?? ""
    if (digits.length > maxCardDigits) return null
    const kind = known.get(digits)
    if (kind !== undefined) return { kind, from, to }
  }
  return null
}

/** `lead` is text before `text` that may say what a number is, such as the name of an object's property. */
export const numbers = (text: string, lead: string, asked: Numbers): ReadonlyArray<DetectedValue> => {
  const { cards, known, phones } = asked
  if (!cards && !phones) return []
  const found: Array<DetectedValue> = []
  for (const row of rowsOf(text)) {
    let isContinued = false
    for (let at = 0; at < row.length;) {
      const sure = (known.size === 0 ? null : knownAt(row, at, known)) ?? (cards ? cardAt(row, at) : null)
      const skipped = isAddressOfNetwork(row, at) ? 4 : isDate(row, at) ? 3 : 0
      if (sure === null && skipped > 0) {
        at += skipped
        isContinued = false
        continue
      }
      const taken: NumberMatch | null = sure ?? (phones ? phoneAt(text, lead, row, at, isContinued) : null)
      if (taken !== null) found.push(...spanOf(text, row, taken))
      isContinued = taken === null
      at = taken === null ? at + 1 : taken.to + 1
    }
  }
  return found
}

/** The digits by which {@link Numbers.known} identifies a number. */
export const digitsIn = (text: string): string => text.replaceAll(/[^0-9]/g, "")
