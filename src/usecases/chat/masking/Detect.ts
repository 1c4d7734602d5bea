/** Finds payment-card numbers and phone numbers in a text. Each position is read a bounded number of times. */
import { cardAt } from "./Cards.ts"
import type { DetectedValue } from "./DetectedValue.ts"
import type { KnownNumbers } from "./KnownNumbers.ts"
import { inAscii, unspacedLetter } from "./Scripts.ts"
import { type Groups, groupsPerPause, nonNumberGroups, rowsOf } from "./NumberRows.ts"
import {
  beginOf,
  beginsPlain,
  type PrecedingDigits,
  mayBegin,
  minPhoneDigits,
  phoneAt,
  type PhoneSearch,
  noWords,
  type Words,
  wordsBefore
} from "./Phones.ts"

interface NumberSearch {
  readonly cards: boolean
  readonly phones: boolean
  readonly known: KnownNumbers
}

/** Minimum digits that a phone number has more than the known number that it begins with. */
const minMoreDigits = 3
/** Maximum characters of digits between a word such as *phone* and its number. */
const maxDigitsBetween = 12

/** The groups of one row that form a number. */
interface NumberMatch {
  readonly kind: string
  readonly to: number
}

const digitsOf = (groups: Groups, from: number, to: number): string =>
  groups
    .slice(from, to + 1)
    .map(({ digits }) => digits)
    .join("")

/** What is known about the next position in a row. */
interface State {
  readonly before: PrecedingDigits
  readonly words: Words
  /** The position from which the distance between the words and a number is measured. */
  readonly from: number
}

class RowSearch {
  private readonly text: string
  private readonly groups: Groups
  private readonly settings: NumberSearch
  private readonly isBeforeLetter: boolean
  private readonly plain: Array<boolean | undefined> = []

  constructor(text: string, groups: Groups, settings: NumberSearch) {
    this.text = text
    this.groups = groups
    this.settings = settings
    const after = text.charAt(groups.at(-1)?.end ?? 0)
    this.isBeforeLetter = /[\p{L}\p{N}_]/u.test(after) && !unspacedLetter.test(after)
  }

  private readonly mayBeCard = (at: number): boolean =>
    this.settings.cards && cardAt(this.groups, at, () => false) >= 0

  /**
   * True when a card number surely begins at the group. Digits may have its form by chance: when a card or phone number
   * begins at the next group, this one does not count.
   */
  private readonly beginsCard = (at: number): boolean =>
    this.mayBeCard(at) && !this.mayBeCard(at + 1) && !beginsPlain(this.groups, at + 1, () => false)

  private readonly beginsPlain = (at: number): boolean =>
    (this.plain[at] ??= this.settings.phones && beginsPlain(this.groups, at, this.beginsCard))

  private readonly beginsKnown = (at: number): boolean => this.settings.known.at(this.groups, at) !== null

  private phoneAt(from: number, { before }: State, words: Words): NumberMatch | null {
    if (!this.settings.phones || !(words.isPhone || mayBegin(this.text, this.groups, from))) return null
    const { beginsCard, beginsKnown, groups, isBeforeLetter, text } = this
    const search: PhoneSearch = {
      text,
      groups,
      from,
      before,
      words,
      isBeforeLetter,
      beginsCard,
      beginsPlain: this.beginsPlain,
      beginsKnown
    }
    const to = phoneAt(search)
    return to < 0 ? null : { kind: "phone", to }
  }

  /** The last group of overlapping card numbers, one of which may be one by chance. */
  private endOfCards(from: number, last: number): number {
    let end = last
    for (let at = from + 1; at <= end; at++) {
      if (this.beginsPlain(end + 1) || this.mayBeCard(end + 1)) break
      end = Math.max(end, cardAt(this.groups, at, this.beginsPlain))
    }
    return end
  }

  private certainMatchAt(at: number, state: State): NumberMatch | null {
    const { settings, groups } = this
    const known = settings.known.at(groups, at)
    if (known === null) {
      const to = settings.cards ? cardAt(groups, at, this.beginsPlain) : -1
      return to < 0 ? null : { kind: "card", to: this.endOfCards(at, to) }
    }
    const longer = this.phoneAt(at, state, noWords)
    const isMore = longer !== null && digitsOf(groups, known.to + 1, longer.to).length >= minMoreDigits
    return isMore ? longer : known
  }

  /** The numbers of the row, and null where the caller may pause. */
  *run(lead: string): Generator<DetectedValue | null, void> {
    const { groups, text } = this
    const [start] = groups
    if (start === undefined) return
    let state: State = { before: "nothing", words: wordsBefore(text, lead, start), from: start.start }
    for (let at = 0, visits = 1; at < groups.length; visits++) {
      if (visits % groupsPerPause === 0) yield null
      const first = groups[at]
      if (first === undefined) return
      const isNear = first.start - state.from <= maxDigitsBetween
      const words = isNear ? state.words : { ...state.words, isPhone: false }
      const certain = this.certainMatchAt(at, state)
      const skipped =
        certain === null && text.charAt(first.start - 1) !== "+" ? nonNumberGroups(groups, at) : 0
      if (skipped > 0) {
        at += skipped
        state = { before: "nothing", words: noWords, from: first.start }
        continue
      }
      const match = certain ?? this.phoneAt(at, state, words)
      const last = match === null ? undefined : groups[match.to]
      if (match === null || last === undefined) {
        const isFirst = state.before === "nothing" || state.before === "number"
        state = { ...state, before: isFirst ? "group" : "groups" }
        at++
        continue
      }
      const begin = match.kind === "phone" ? beginOf(text, first) : first.start
      yield { kind: match.kind, start: begin, end: last.end }
      const isPhone = match.kind === "phone" && words.isPhone
      state = { before: "number", words: { isPhone, isOther: false }, from: last.end }
      at = match.to + 1
    }
  }
}

/**
 * The card and phone numbers of `text`, and null where the caller may pause. `lead` is text before `text` that may say
 * what a number is, such as the name of an object's property.
 */
export function* searchNumbers(
  text: string,
  lead: string,
  settings: NumberSearch
): Generator<DetectedValue | null, void> {
  if (!settings.cards && !settings.phones) return
  const ascii = inAscii(text)
  for (const row of rowsOf(ascii, minPhoneDigits)) {
    if (row === null) yield null
    else yield* new RowSearch(ascii, row, settings).run(lead)
  }
}

/** {@link searchNumbers} without pauses. */
export const findNumbers = (
  text: string,
  lead: string,
  settings: NumberSearch
): ReadonlyArray<DetectedValue> => {
  const found: Array<DetectedValue> = []
  for (const value of searchNumbers(text, lead, settings)) if (value !== null) found.push(value)
  return found
}

/** The digits by which {@link KnownNumbers} identifies a number. */
export const digitsIn = (text: string): string => inAscii(text).replaceAll(/[^0-9]/g, "")
