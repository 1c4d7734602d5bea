/**
 * Text to index terms, alike on the side of the index and of the query. Words are NFKC, lower case; English stop words and
 * endings go from words in Latin script; scripts written without spaces become pairs of neighbouring characters.
 * Made here and not in PostgreSQL, so that every engine ranks alike. Linear in the length of any input.
 */
import { stem } from "porter2"

/** English function words (the Snowball list): too common to tell chunks apart. */
const stopWords = new Set(
  (
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself " +
    "it its itself they them their theirs themselves what which who whom this that these those am is are was were be " +
    "been being have has had having do does did doing a an the and but if or because as until while of at by for with " +
    "about against between into through during before after above below to from up down in out on off over under " +
    "again further then once here there when where why how all any both each few more most other some such no nor " +
    "not only own same so than too very s t can will just don should now"
  ).split(" ")
)

/** A tsvector holds lexemes of at most 2,046 bytes; this many UTF-16 units are always fewer. */
const maxTermLength = 128
/** The highest position a tsvector can hold. */
const maxPosition = 16_383
/** Occurrences counted of one term; a tsvector keeps 256. */
export const maxFrequency = 255

// Normalisation sorts the marks of one letter in quadratic time, so nobody gets to stack thousands.
const stackedMarks = /(\p{M}{16})\p{M}+/gu
const word = /[\p{L}\p{N}\p{M}]+/gu
const unspacedCharacter =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u
const characters = /\P{M}?\p{M}*/gu
const latin = /^\p{Script=Latin}+$/u

/** In text of nothing but ASCII, words are what these simple patterns say, and nothing is to be normalised. */
const ascii = /^[\0-\x7f]*$/
const asciiWord = /[a-z0-9]+/g
const asciiLetters = /^[a-z]+$/

/** Stems of the words that were seen last: text repeats its words. Short ones do not hold on to the text they stood in. */
const stems = new Map<string, string>()
const mostStems = 20_000
const longestKept = 12

const stemOf = (term: string): string => {
  const known = stems.get(term)
  if (known !== undefined) return known
  const made = stem(term)
  if (term.length <= longestKept) {
    if (stems.size >= mostStems) stems.clear()
    stems.set(term, made)
  }
  return made
}

const bounded = (term: string): string => {
  if (term.length <= maxTermLength) return term
  // A cut between the halves of a surrogate pair leaves one half, which goes too.
  const last = term.charCodeAt(maxTermLength - 1)
  return term.slice(0, last >= 0xd800 && last <= 0xdbff ? maxTermLength - 1 : maxTermLength)
}

const addWord = (terms: Array<string>, run: string): void => {
  const term = bounded(run)
  if (!latin.test(term)) terms.push(term)
  else if (!stopWords.has(term)) terms.push(stemOf(term))
}

/** As {@link addWord}, without asking for scripts. */
const addAsciiWord = (terms: Array<string>, run: string): void => {
  const term = bounded(run)
  if (!asciiLetters.test(term)) terms.push(term)
  else if (!stopWords.has(term)) terms.push(stemOf(term))
}

/** Pairs of neighbouring characters, or the one character there is; marks stay with the character before them. */
const addPairs = (terms: Array<string>, run: string): void => {
  let before: string | undefined
  let pairs = 0
  for (const [character] of run.matchAll(characters)) {
    if (character === "") continue
    if (before !== undefined) {
      terms.push(bounded(before + character))
      pairs++
    }
    before = character
  }
  if (pairs === 0 && before !== undefined) terms.push(bounded(before))
}

const addRun = (terms: Array<string>, run: string): void => {
  if (ascii.test(run)) return addAsciiWord(terms, run)
  if (!unspacedCharacter.test(run)) return addWord(terms, run)
  let start = 0
  let at = 0
  let unspaced: boolean | undefined
  const flush = () => {
    if (start < at) (unspaced === true ? addPairs : addWord)(terms, run.slice(start, at))
    start = at
  }
  for (const character of run) {
    const mark = at > 0 && /^\p{M}$/u.test(character)
    const kind = mark ? unspaced : unspacedCharacter.test(character)
    if (kind !== unspaced) flush()
    unspaced = kind
    at += character.length
  }
  flush()
}

/** The index terms of a text, in order, repeats included. */
export const terms = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  if (ascii.test(text)) {
    for (const run of text.toLowerCase().match(asciiWord) ?? []) addAsciiWord(found, run)
    return found
  }
  const plain = text.replace(stackedMarks, "$1").normalize("NFKC").toLowerCase()
  for (const [run] of plain.matchAll(word)) addRun(found, run)
  return found
}

const quoted = (term: string): string =>
  /['\\]/.test(term) ? `'${term.replaceAll("\\", "\\\\").replaceAll("'", "''")}'` : `'${term}'`

export interface TermVector {
  /** Text form of a `tsvector`, with positions. */
  readonly tsv: string
  /** Occurrences it holds: the chunk's length in BM25. */
  readonly length: number
}

/** What PostgreSQL's `::tsvector` reads: each term with its positions, as many as a tsvector can hold. */
export const toTsvector = (inOrder: ReadonlyArray<string>): TermVector => {
  const positions = new Map<string, Array<number>>()
  let length = 0
  for (const [place, term] of inOrder.slice(0, maxPosition).entries()) {
    const known = positions.get(term)
    if (known === undefined) positions.set(term, [place + 1])
    else if (known.length < maxFrequency) known.push(place + 1)
    else continue
    length++
  }
  const entries = Array.from(positions, ([term, places]) => `${quoted(term)}:${places.join(",")}`)
  return { tsv: entries.join(" "), length }
}

const entry = /'((?:[^'\\]|''|\\\\)*)'(?::([\d,A-D]+))?/g

/** Calls `each` with every term of a tsvector's text form and how often it occurs. */
export const eachTerm = (tsv: string, each: (term: string, frequency: number) => void): void => {
  for (const [, term = "", positions = ""] of tsv.matchAll(entry)) {
    let frequency = 1
    for (let at = positions.indexOf(","); at >= 0; at = positions.indexOf(",", at + 1)) frequency++
    const plain =
      term.includes("'") || term.includes("\\") ? term.replace(/''|\\\\/g, (pair) => pair.charAt(0)) : term
    each(plain, frequency)
  }
}
