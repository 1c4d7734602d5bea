/**
 * Extracts the statements of a text sentence by sentence, and finds statements that contradict each other: nearly the
 * same words with other numbers, other dates, or a negation. Only words are compared, so that a finding can be
 * explained.
 */
import { hash } from "./Hash.ts"
import { isFunctionWord, wordSet } from "./FunctionWords.ts"
import { terms as termsOf, withoutJoiners } from "./Tokenizer.ts"

export interface Statement {
  /** The sentence as written. */
  readonly text: string
  /** The distinct content words, without numbers, dates and negations. */
  readonly terms: ReadonlySet<string>
  readonly numbers: ReadonlySet<string>
  readonly dates: ReadonlySet<string>
  readonly isNegated: boolean
  /** Words that name a thing: capitalised within the sentence, or letters with digits. */
  readonly names: ReadonlySet<string>
}

/** The values in which two statements differ. */
export interface Disagreement {
  readonly kind: "number" | "date" | "negation"
  readonly one: ReadonlyArray<string>
  readonly other: ReadonlyArray<string>
}

/** Maximum number of statements of a text, and of UTF-16 units of a statement, that are examined. */
const maxStatements = 60
const maxLength = 500
/** Minimum number of content words. Shorter statements are similar by chance. */
const minTerms = 3
/** Minimum share of common words where one statement has all words of the other. */
const minShareWithin = 0.6
/** Minimum share of common words of statements that say the same. */
const minShareSame = 0.85
/** Maximum number of index keys of a statement. */
const maxIndexKeys = 8

const negations = wordSet(
  "no not never none neither nor without cannot nicht kein keine keinen keiner keinem keines nie niemals ohne pas jamais " +
    "sans ne sin nunca"
)
const contractedNegation =
  /^(?:don|doesn|didn|isn|aren|wasn|weren|won|can|couldn|wouldn|shouldn|hasn|haven)['’]t$/u
const days =
  "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag " +
  "mondays tuesdays wednesdays thursdays fridays saturdays sundays"
const months =
  "january february march april may june july august september october november december januar februar märz mai juni juli " +
  "oktober dezember"
const calendar = wordSet(`${days} ${months}`)
const numberWords = new Map(
  "two three four five six seven eight nine ten eleven twelve|zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
    .split("|")
    .flatMap((words) => words.split(" ").map((word, place) => [word, `${place + 2}`] as const))
)

const sentenceBreak = /(?<=[.!?])["”)]*\s+(?=["“(]?[\p{Lu}\p{N}])|\n+/u
const listMarker = /^[\s>#*+-]*(?:\d{1,3}[.)]\s+)?/u
const words = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:[.,:'’/-][\p{L}\p{N}\p{M}]+)*/gu
const isoDate = /^\d{4}-\d{2}-\d{2}$/u
const number = /^\d+(?:[.,:]\d+)*$/u
const numberWithUnit = /^(\d+(?:[.,]\d+)*)(?:h|d|min|s|kg|g|km|m|cm|mm|gb|mb|tb|am|pm|st|nd|rd|th|eur|usd)$/u
const groupedThousands = /^\d{1,3}(?:,\d{3})+$/u

const plainNumber = (text: string): string => (groupedThousands.test(text) ? text.replaceAll(",", "") : text)

/** Sentences that state something: without tables, code, questions and headings. */
const sentencesOf = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let inFence = false
  for (const line of text.split("\n")) {
    if (/^\s*(?:```|~~~)/u.test(line)) inFence = !inFence
    else if (!inFence && !line.includes("|") && !/^\s*#/u.test(line))
      for (const piece of line.split(sentenceBreak)) {
        const sentence = piece.replace(listMarker, "").trim()
        if (sentence !== "" && sentence.length <= maxLength && !/\?["”)]*$/u.test(sentence))
          found.push(sentence)
        if (found.length === maxStatements) return found
      }
  }
  return found
}

const statementOf = (text: string): Statement => {
  const numbers = new Set<string>()
  const dates = new Set<string>()
  const names = new Set<string>()
  const content: Array<string> = []
  let isNegated = false
  let isFirst = true
  for (const [found] of withoutJoiners(text).matchAll(words)) {
    const lower = found.toLowerCase()
    const [, amount] = numberWithUnit.exec(lower) ?? []
    const spelled = numberWords.get(lower)
    if (negations.has(lower) || contractedNegation.test(lower)) isNegated = true
    else if (isoDate.test(lower) || (calendar.has(lower) && (lower !== "may" || found === "May")))
      dates.add(lower)
    else if (number.test(lower)) numbers.add(plainNumber(lower))
    else if (amount !== undefined) numbers.add(plainNumber(amount))
    else if (spelled !== undefined) numbers.add(spelled)
    else {
      const isName = /\p{N}/u.test(found) || (!isFirst && /^\p{Lu}/u.test(found))
      if (isName) names.add(lower)
      if (!isFunctionWord(lower)) content.push(...termsOf(lower))
    }
    isFirst = false
  }
  return { text, terms: new Set(content), numbers, dates, isNegated, names }
}

/** The statements of a text that have enough words to be compared. */
export const statementsOf = (text: string): ReadonlyArray<Statement> =>
  sentencesOf(text)
    .map(statementOf)
    .filter(({ terms }) => terms.size >= minTerms)

/**
 * Index keys of a statement: hashes of some of its words. Two statements with enough common words share at least one
 * key, because both take their words in the same order and leave out fewer than they must share.
 */
export const indexKeysOf = ({ terms }: Statement): ReadonlyArray<number> => {
  const all = Array.from(terms, hash).toSorted((one, other) => one - other)
  const shared = Math.ceil((minShareWithin / (2 - minShareWithin)) * all.length)
  return [...new Set(all.slice(0, Math.min(maxIndexKeys, all.length - shared + 1)))]
}

/** The members of `one` that `other` does not have. */
const onlyInFirst = (one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlyArray<string> =>
  [...one].filter((member) => !other.has(member)).toSorted()

/** Share of common words: 1 for identical statements, 0 for none. */
export const similarity = (one: Statement, other: Statement): number => {
  const common = [...one.terms].filter((term) => other.terms.has(term)).length
  return (2 * common) / (one.terms.size + other.terms.size)
}

const isWithin = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  onlyInFirst(one, other).length === 0 || onlyInFirst(other, one).length === 0

/**
 * Whether both statements are about the same thing, as far as words tell: the words of one include those of the other.
 * Where each has a word of its own, such as two product names, they may be about different things.
 */
const isAboutTheSame = (one: Statement, other: Statement): boolean =>
  isWithin(one.names, other.names) &&
  isWithin(one.terms, other.terms) &&
  similarity(one, other) >= minShareWithin

/** Returns what each statement says that the other does not; both must have something. */
const differencesOf = (
  kind: "date" | "number",
  one: ReadonlySet<string>,
  other: ReadonlySet<string>
): ReadonlyArray<Disagreement> => {
  const [left, right] = [onlyInFirst(one, other), onlyInFirst(other, one)]
  return left.length > 0 && right.length > 0 ? [{ kind, one: left, other: right }] : []
}

/** The differences of two statements about the same thing; empty where they agree or are about different things. */
export const disagreements = (one: Statement, other: Statement): ReadonlyArray<Disagreement> => {
  if (!isAboutTheSame(one, other)) return []
  const found = [
    ...differencesOf("number", one.numbers, other.numbers),
    ...differencesOf("date", one.dates, other.dates)
  ]
  if (found.length > 0 || one.isNegated === other.isNegated) return found
  return [{ kind: "negation", one: [one.isNegated ? "no" : "yes"], other: [other.isNegated ? "no" : "yes"] }]
}

/** Whether both sets have the same members. */
export const isSameSet = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && [...one].every((member) => other.has(member))

/** Whether two statements say the same in nearly the same words. */
export const isSame = (one: Statement, other: Statement): boolean =>
  one.isNegated === other.isNegated &&
  isSameSet(one.numbers, other.numbers) &&
  isSameSet(one.dates, other.dates) &&
  similarity(one, other) >= minShareSame
