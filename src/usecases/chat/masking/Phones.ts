/** Phone numbers. A library for them would need a country, which a chat does not give. */
import { dateAt, type Group, type Groups } from "./NumberRows.ts"
import { unspacedLetter } from "./Scripts.ts"

/** Characters before a number that are searched for a word that says what it is. */
const contextLength = 32
/** Contexts that end with a word before a phone number, by groups of languages. `\b` knows ASCII letters only. */
const phoneContexts = [
  /(?:\btel\b|\btel[.:]|tel[ée]fon|t[ée]l[ée]phone|\bt[ée]l\b|phone|mobile?\b|mobil|handy|\bcell|\bcall\b)[^0-9\n]{0,20}$/iu,
  /(?:\bfax|whatsapp|\bsms\b|rufnummer|durchwahl|anruf|rückruf|r[uü]f\w* \w{0,8} ?an|\bmy number)[^0-9\n]{0,20}$/iu,
  /(?:meine nummer|wa\.me\/|tel:|m[óo]vil|celular|ll[áa]ma|\bligue|\bchiam|portable|appele|mobiel)[^0-9\n]{0,20}$/iu,
  /(?:\bbel\b|komórk|\bcep\b|telepon|điện thoại|sđt|телефон|(?<!\p{L})тел(?!\p{L})|(?<!\p{L})моб|звон)[^0-9\n]{0,20}$/iu,
  /(?:电话|電話|手机|手機|携帯|联系方式|連絡先|拨打|致电|전화|휴대폰|핸드폰|연락처|โทร|เบอร์)[^0-9\n]{0,20}$/u,
  /(?:هاتف|جوال|موبايل|اتصل|تلفن|موبایل|تماس|טלפון|נייד|मोबाइल|फ़ोन|फोन)[^0-9\n]{0,20}$/u
]
/** Contexts that end with a word before another number. */
const otherContexts = [
  /(?:order|bestell|auftrag|rechnung|invoice|ticket|kunde|customer|artikel|article|item|sku|iban|bic)[^0-9\n]{0,14}$/iu,
  /(?:tracking|sendung|paket|parcel|serial|serien|\bref|reference|referenz|\bid\b|\bnr\b|\bno\b)[^0-9\n]{0,14}$/iu,
  /(?:number|nummer|version|#|konto|account|vorgang|case|build|isbn|ean|gtin|contract|vertrag)[^0-9\n]{0,14}$/iu,
  /(?:transaction|transaktion|token|code|zähler|meter|imei|pin|pedido|factura|fatura|commande)[^0-9\n]{0,14}$/iu,
  /(?:facture|ordine|fattura|factuur|zamówieni|faktur|sipariş|đơn hàng|заказ|сч[её]т|артикул)[^0-9\n]{0,14}$/iu,
  /(?:订单|訂單|单号|單號|编号|編號|发票|账号|帳號|身份证|注文|型番|請求書|口座|伝票|주문|송장|계좌)[^0-9\n]{0,14}$/u,
  /(?:طلب|فاتورة|سفارش|הזמנה)[^0-9\n]{0,14}$/u
]
const price =
  /^[ \u00a0]?(?:€|\$|£|¥|%|eur\b|usd\b|gbp\b|chf\b|euros?\b|円|元|원|บาท|₽|₹|₺|zł|руб)|^[,.]\d{1,2}(?!\d)/iu

const nationalLength = { min: 9, max: 12 }
const internationalLength = { min: 8, max: 15 }
/** Minimum digits of a number after a word such as *phone*. */
export const minPhoneDigits = 6
/** Maximum digits of a number, with the `00` before its country. */
const maxPhoneDigits = internationalLength.max + 2

/** The start of the number, including a `+` or bracket before its first group. */
export const beginOf = (text: string, { start }: Group): number => {
  const before = /(?:\(\+?|\+\(?)$/.exec(text.slice(Math.max(0, start - 2), start))
  return start - (before?.[0].length ?? 0)
}

/** What the words before a row say about its numbers. */
export interface Words {
  readonly isPhone: boolean
  readonly isOther: boolean
}

/** No word says anything. */
export const noWords: Words = { isPhone: false, isOther: false }

export const wordsBefore = (text: string, lead: string, first: Group): Words => {
  const begin = beginOf(text, first)
  const before = (lead + text.slice(Math.max(0, begin - contextLength), begin)).slice(-contextLength)
  // No word counts that is before other digits or in another line.
  const context = /(?:^|[0-9\n])[^0-9\n]*$/.exec(before)?.[0] ?? ""
  if (!/[\p{L}#]/u.test(context)) return noWords
  const endsWith = (ending: RegExp) => ending.test(context)
  const isPhone = phoneContexts.some(endsWith)
  return { isPhone, isOther: !isPhone && otherContexts.some(endsWith) }
}

interface Marks {
  readonly hasPlus: boolean
  readonly hasBracket: boolean
  readonly isOther: boolean
}

/** Groups of one row that may be a number, with their digits. */
interface Candidate {
  readonly groups: Groups
  readonly from: number
  readonly to: number
  readonly digits: string
}

const hasInner = ({ from, groups, to }: Candidate, meets: (gap: string) => boolean): boolean => {
  for (let at = from + 1; at <= to; at++) if (meets(groups[at]?.gap ?? "")) return true
  return false
}

const isInternational = ({ digits, from, groups, to }: Candidate, { hasPlus, isOther }: Marks): boolean => {
  const { min, max } = internationalLength
  if (hasPlus) return digits.length >= min && digits.length <= max && !digits.startsWith("0")
  if (!/^00[1-9]/.test(digits) || groups[from]?.digits.startsWith("00") !== true) return false
  return digits.length >= min + 3 && digits.length <= max + 2 && (to > from || !isOther)
}

const isNational = (candidate: Candidate, { isOther }: Marks): boolean => {
  const { digits, from, groups, to } = candidate
  const { min, max } = nationalLength
  if (digits.length < min || digits.length > max || !/^0[1-9]/.test(digits)) return false
  if (from === to) return digits.length > min && !isOther
  // Three groups with dashes may be an article number as well.
  if (isOther && to - from > 1 && !hasInner(candidate, (gap) => gap !== "-")) return false
  const first = groups[from]?.digits.length ?? 0
  return first >= 2 && first <= 6
}

/** North American numbers: `(415) 555-2671`, `1-415-555-2671`. */
const isAmerican = ({ from, groups, to }: Candidate, { hasBracket, isOther }: Marks): boolean => {
  const hasCountry = to - from === 3 && groups[from]?.digits === "1"
  if (!hasCountry && to - from !== 2) return false
  const [area, exchange, line] = groups.slice(to - 2, to + 1)
  if (area?.digits.length !== 3 || exchange?.digits.length !== 3 || line?.digits.length !== 4) return false
  if (!/^[2-9]/.test(area.digits) || !/^[2-9]/.test(exchange.digits)) return false
  return hasBracket || ((exchange.gap.trim() === line.gap.trim() || hasCountry) && !isOther)
}

const isPlain = (candidate: Candidate, marks: Marks): boolean =>
  isInternational(candidate, marks) || isNational(candidate, marks) || isAmerican(candidate, marks)

/** False where no number without a plus begins, unless a word before it says so. */
const mayBeginPlain = (groups: Groups, at: number): boolean => {
  const digits = groups[at]?.digits ?? ""
  if (digits.startsWith("0")) return digits.length >= 2
  if (digits !== "1" && digits.length !== 3) return false
  return groups[at + 1]?.digits.length === 3
}

/** False for most groups that no number without a word before it begins with. */
export const mayBegin = (text: string, groups: Groups, at: number): boolean => {
  const start = groups[at]?.start ?? 0
  return mayBeginPlain(groups, at) || text.charAt(start - 1) === "+" || text.charAt(start - 2) === "+"
}

const unmarked: Marks = { hasPlus: false, hasBracket: false, isOther: false }

type GroupTest = (at: number) => boolean

/**
 * The last group of the number that begins at `from`, without words before it; -1 if none begins there. It ends before
 * a card number, and if it may be complete, before a group for which `ends` is true.
 */
const plainEnd = (groups: Groups, from: number, beginsCard: GroupTest, ends: GroupTest): number => {
  const first = groups[from]
  if (first === undefined || !mayBeginPlain(groups, from)) return -1
  const marks = { ...unmarked, hasBracket: first.gap.includes("(") }
  let digits = ""
  let longest = -1
  for (let to = from; to < groups.length; to++) {
    if (to > from + 1 && isSpaced(groups[to]?.gap ?? "")) break
    if ((longest >= 0 && ends(to)) || (to > from && beginsCard(to))) break
    digits += groups[to]?.digits ?? ""
    if (digits.length > maxPhoneDigits) break
    if (isPlain({ groups, from, to, digits }, marks)) longest = to
  }
  return longest
}

/** True when a number begins at `from`, without words before it. */
export const beginsPlain = (groups: Groups, from: number, beginsCard: GroupTest): boolean =>
  plainEnd(groups, from, beginsCard, () => true) >= 0

/** True for a separator that rather stands between numbers than in one. */
const isSpaced = (gap: string): boolean => / [-/\u2013] /u.test(gap)

/** True when the number is part of a longer identifier, such as `AB-030 12345`. */
const isAttached = (text: string, at: number, candidate: Candidate, hasPlus: boolean): boolean => {
  const before = text.charAt(at - 1)
  if (unspacedLetter.test(before)) return false
  if (/[\p{L}\p{N}_]/u.test(before)) return true
  if (hasPlus || !/[-./\\#]/u.test(before) || !/[\p{L}\p{N}]/u.test(text.charAt(at - 2))) return false
  const context = text.slice(Math.max(0, at - contextLength), at - 1)
  if (/@[^\s@]*$/u.test(context)) return false
  // A word or a date before the separator is no part of an identifier with spaces.
  const isClear = hasInner(candidate, (gap) => /[ \u00a0\u202f()]/u.test(gap))
  return !isClear || !/(?:\p{Ll}{3}|\p{L}{5}|\d)$/u.test(context)
}

/** What precedes a number in its row: one group of digits that is no number, or several. */
export type PrecedingDigits = "nothing" | "number" | "group" | "groups"

/** Maximum digits of a house number, a postal code or the number of a list before a number. */
const maxBareDigits = 5

/** True when the digits before the number are not a part of the same identifier. */
const isSeparate = ({ before: kind, text, words }: PhoneSearch, candidate: Candidate): boolean => {
  const { from, groups, to } = candidate
  const first = groups[from]
  const before = groups[from - 1]
  if (first === undefined || before === undefined) return false
  // The mark of a list: `1. 0171 2345678`, `1) 0171 2345678`, `Filiale 3 - 030 1234567`.
  if (/[^ \u00a0\u202f][ \u00a0]$|[()]/u.test(first.gap)) return true
  if (words.isOther || kind === "groups" || before.digits.length > maxBareDigits) return false
  if (before.gap === "" && /[\p{L}\p{N}_./\\#-]/u.test(text.charAt(before.start - 1))) return false
  const isOneGroup = from === to
  const isSame = hasInner(candidate, (gap) => gap === first.gap)
  const isBlank = first.gap.trim() === ""
  const own = groups.slice(from, to + 1)
  if (isBlank && !isOneGroup && !isSame) return true
  // A French number, unless it may be a list of pairs.
  if (own.length >= 5 && own.slice(0, 5).every(({ digits }) => digits.length === 2))
    return before.digits.length !== 2
  if (first.digits.length < 3 || first.digits.length > 5 || !first.digits.startsWith("0")) return false
  if (!isBlank) return !isOneGroup && !isSame
  // Groups of equal length are rather thousands or a long identifier.
  return isOneGroup || own.some(({ digits }) => digits.length !== first.digits.length)
}

export interface PhoneSearch {
  readonly text: string
  readonly groups: Groups
  readonly from: number
  readonly before: PrecedingDigits
  readonly words: Words
  /** Whether a letter follows the last group of the row. */
  readonly isBeforeLetter: boolean
  /** Whether a number other than this one surely begins at a group. */
  readonly beginsCard: GroupTest
  readonly beginsPlain: GroupTest
  readonly beginsKnown: GroupTest
}

/**
 * Whether the number has to end before `at`. `isComplete` is true when the groups before are a number, `isShort` when
 * they are none by themselves.
 */
const endsBefore = (search: PhoneSearch, at: number, isComplete: boolean, isShort = false): boolean => {
  const { from, groups } = search
  const date = dateAt(groups, at)
  if (date === "sure" || (date === "unsure" && isComplete)) return true
  if (search.beginsCard(at) || (isComplete && search.beginsKnown(at))) return true
  if (at > from + 1 && isSpaced(groups[at]?.gap ?? "")) return true
  const isNext = isComplete || (isShort && groups[at]?.digits.startsWith("0") === true)
  return isNext && search.beginsPlain(at)
}

/** The last group of the rest that a number of the maximum length leaves, if the rest is too short for a number. */
const endOfRest = (search: PhoneSearch, last: number): number => {
  const { groups } = search
  let length = 0
  let end = last
  for (let at = last + 1; at < groups.length; at++) {
    if (endsBefore(search, at, true)) break
    length += groups[at]?.digits.length ?? 0
    if (length >= minPhoneDigits) return last
    end = at
  }
  return end
}

/** The last group of the number that ends at `last` and of one that begins in it: `01067 0351 1234567`. */
const endOfInner = (search: PhoneSearch, last: number): number => {
  const { beginsCard, beginsPlain: ends, from, groups } = search
  let end = last
  for (let at = from + 1; at <= last; at++) {
    const { digits = "" } = groups[at] ?? {}
    if (digits.length < 3 || !digits.startsWith("0") || !ends(at)) continue
    const inner = plainEnd(groups, at, beginsCard, ends)
    let to = last
    while (to < inner && !endsBefore(search, to + 1, true)) to++
    if (to === inner) end = Math.max(end, inner)
  }
  return end
}

/** The last group of the phone number that begins at `from`; -1 if none begins there. */
export const phoneAt = (search: PhoneSearch): number => {
  const { before, from, groups, isBeforeLetter, text, words } = search
  const first = groups[from]
  if (first === undefined) return -1
  const begin = beginOf(text, first)
  const head = text.slice(begin, first.start)
  const hasPlus = head.includes("+")
  const marks: Marks = { hasPlus, hasBracket: head.includes("("), isOther: words.isOther }
  let digits = ""
  let longest = -1
  let isComplete = false
  let isLong = false
  // A number that needs no word before it is complete as soon as it would be without the word.
  const needsWord = words.isPhone && !hasPlus && !search.beginsPlain(from)
  // A country before a number belongs to it.
  const isShort = needsWord && !first.digits.startsWith("00")
  for (let to = from; to < groups.length; to++) {
    const group = groups[to]
    if (group === undefined) break
    if (to > from && endsBefore(search, to, isComplete, isShort)) break
    digits += group.digits
    isLong = digits.length > maxPhoneDigits
    if (isLong || (isBeforeLetter && to === groups.length - 1)) break
    const isOwn = isPlain({ groups, from, to, digits }, marks)
    if (words.isPhone) {
      // No amount begins with a zero.
      const mayBePrice = !hasPlus && !digits.startsWith("0") && !search.beginsPlain(to + 1)
      const isPrice = mayBePrice && price.test(text.slice(group.end, group.end + 8))
      if (digits.length >= minPhoneDigits && !isPrice) longest = to
    } else if (isOwn) longest = to
    isComplete ||= isOwn || (needsWord && longest >= 0)
  }
  if (longest < 0) return -1
  if (words.isPhone) return isLong ? endOfRest(search, longest) : longest
  const candidate: Candidate = { groups, from, to: longest, digits }
  const isPart =
    before === "nothing"
      ? isAttached(text, begin, candidate, hasPlus)
      : before !== "number" && !isSeparate(search, candidate)
  return isPart ? -1 : hasPlus ? longest : endOfInner(search, longest)
}
