/**
 * Text to index terms. Words are NFKC, lower case. English loses its function words and endings; other spaced languages
 * become pieces of words; scripts written without spaces become pairs of neighbouring characters. Made here and not in
 * PostgreSQL, so that every engine ranks alike. Linear in the length of any input.
 */
import { stem } from "porter2"
import { englishWords, isFunctionWord } from "./FunctionWords.ts"

/** A tsvector holds lexemes of at most 2,046 bytes; this many UTF-16 units are always fewer. */
const maxTermLength = 128
/** The highest position a tsvector can hold. */
const maxPosition = 16_383
/** Occurrences counted of one term; a tsvector keeps 256. */
export const maxFrequency = 255

// Normalisation sorts the marks of one letter in quadratic time, so their number is bounded.
const stackedMarks = /(\p{M}{16})\p{M}+/gu
/** A word begins with a letter or digit: marks alone, such as the selector after a symbol, are none. */
export const word = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu
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
const maxStems = 20_000
const maxCachedTermLength = 12

const stemOf = (term: string): string => {
  const known = stems.get(term)
  if (known !== undefined) return known
  const made = stem(term)
  if (term.length <= maxCachedTermLength) {
    if (stems.size >= maxStems) stems.clear()
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
  else if (!englishWords.has(term)) terms.push(stemOf(term))
}

/** As {@link addWord}, without asking for scripts. */
const addAsciiWord = (terms: Array<string>, run: string): void => {
  const term = bounded(run)
  if (!asciiLetters.test(term)) terms.push(term)
  else if (!englishWords.has(term)) terms.push(stemOf(term))
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

type Add = (terms: Array<string>, run: string) => void

/** Adds the words of a run of letters, and by `addUnspaced` those of scripts without spaces. */
const addRun = (terms: Array<string>, run: string, addSpaced: Add, addUnspaced: Add): void => {
  if (!unspacedCharacter.test(run)) return addSpaced(terms, run)
  let start = 0
  let at = 0
  let unspaced: boolean | undefined
  const flush = () => {
    if (start < at) (unspaced === true ? addUnspaced : addSpaced)(terms, run.slice(start, at))
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

/** Normal form, lower case. */
const plainOf = (text: string): string => text.replace(stackedMarks, "$1").normalize("NFKC").toLowerCase()

/** The words of a text in order, repeats included: English stems, whole words of other scripts, pairs of characters. */
export const terms = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  if (ascii.test(text)) {
    for (const run of text.toLowerCase().match(asciiWord) ?? []) addAsciiWord(found, run)
    return found
  }
  for (const [run] of plainOf(text).matchAll(word)) addRun(found, run, addWord, addPairs)
  return found
}

/** Letters of a piece. */
const pieceLength = 4
/** Pieces of one word: its first ones, by which most endings do not matter, and its last, by which compounds are found. */
const leadingPieces = 3
/**
 * Stands before what is cut from words in Latin script, so that it never passes for an English stem. No word has it.
 */
export const pieceMark = "_"

const marksOf = /\p{M}+/gu
const unaccented = (run: string): string => run.normalize("NFD").replace(marksOf, "").normalize("NFC")
const digit = /\p{N}/u
const han = /\p{Script=Han}/u

/** A word of an inflected language without a dictionary: overlapping pieces of four letters, without their accents. */
const addPieces = (terms: Array<string>, run: string): void => {
  const whole = bounded(run)
  if (digit.test(whole)) terms.push(whole)
  else if (!isFunctionWord(whole)) {
    const isLatin = latin.test(unaccented(whole))
    const mark = isLatin ? pieceMark : ""
    // Short words of Latin script differ by little more than their accents.
    const short = isLatin && Array.from(whole).length <= pieceLength
    const letters = short ? [whole] : Array.from(unaccented(whole))
    if (letters.length <= pieceLength) return void terms.push(mark + letters.join(""))
    const pieces = letters.length - pieceLength + 1
    for (let at = 0; at < pieces; at++) {
      if (at < leadingPieces || at === pieces - 1)
        terms.push(mark + letters.slice(at, at + pieceLength).join(""))
    }
  }
}

/** {@link addPairs}, and each Han character for itself: it is a word, or nearly. */
const addCharacters = (terms: Array<string>, run: string): void => {
  addPairs(terms, run)
  if (!han.test(run)) return
  for (const character of run) if (han.test(character) && character !== run) terms.push(character)
}

const addEnglishOrPieces = (terms: Array<string>, run: string): void =>
  (latin.test(bounded(run)) || digit.test(run) ? addWord : addPieces)(terms, run)

/**
 * The words of a text of any language as pieces: those of spaced scripts cut to four letters without accents, Han characters
 * alone and in pairs. `english` keeps words in Latin script as {@link terms} has them.
 */
export const pieces = (text: string, { english }: { readonly english: boolean }): ReadonlyArray<string> => {
  if (english && ascii.test(text)) return terms(text)
  const found: Array<string> = []
  const add = english ? addEnglishOrPieces : addPieces
  for (const [run] of plainOf(text).matchAll(word)) addRun(found, run, add, addCharacters)
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
