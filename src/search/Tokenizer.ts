/**
 * Splits text into index terms. Words are NFKC, lower case. English words are stemmed, without function words. Other
 * languages with spaces are cut into word pieces. Scripts without spaces become pairs of neighbouring characters. This
 * is done here and not in PostgreSQL, so that every engine ranks alike. Time is linear in the length of any input.
 */
import { stem } from "porter2"
import { englishWords, isFunctionWord } from "./FunctionWords.ts"

/**
 * Maximum length of a term in UTF-16 units. A tsvector holds lexemes of at most 2,046 bytes, which this never exceeds.
 */
const maxTermLength = 128
/** The highest position a tsvector can hold. */
const maxPosition = 16_383
/** Maximum frequency of a term that is counted; a tsvector keeps 256 positions. */
export const maxFrequency = 255

// Normalisation sorts the combining marks of a letter in quadratic time, so their number is bounded.
const stackedMarks = /(\p{M}{16})\p{M}+/gu
/**
 * A word of a text {@link withoutJoiners}. It begins with a letter or digit. Marks alone, such as a variation selector
 * after a symbol, are not words.
 */
export const word = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu
export const unspacedCharacter =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u
const characters = /\P{M}?\p{M}*/gu
const latin = /^\p{Script=Latin}+$/u

/** Text of only ASCII characters needs no normalisation, and simpler patterns find its words. */
const ascii = /^[\0-\x7f]*$/
const asciiWord = /[a-z0-9]+/g
const asciiLetters = /^[a-z]+$/

/**
 * Stems of recent words. Only short words are cached, because a cached word keeps the text alive that it was cut from.
 */
const stems = new Map<string, string>()
const maxStems = 20_000
const maxCachedTermLength = 12

const stemOf = (term: string): string => {
  const known = stems.get(term)
  if (known !== undefined) return known
  const stemmed = stem(term)
  if (term.length <= maxCachedTermLength) {
    if (stems.size >= maxStems) stems.clear()
    stems.set(term, stemmed)
  }
  return stemmed
}

const bounded = (term: string): string => {
  if (term.length <= maxTermLength) return term
  // A cut within a surrogate pair would leave one half, which is dropped too.
  const last = term.charCodeAt(maxTermLength - 1)
  return term.slice(0, last >= 0xd800 && last <= 0xdbff ? maxTermLength - 1 : maxTermLength)
}

const addWord = (terms: Array<string>, run: string): void => {
  const term = bounded(run)
  if (!latin.test(term)) terms.push(term)
  else if (!englishWords.has(term)) terms.push(stemOf(term))
}

/** Like {@link addWord}, for ASCII words. */
const addAsciiWord = (terms: Array<string>, run: string): void => {
  const term = bounded(run)
  if (!asciiLetters.test(term)) terms.push(term)
  else if (!englishWords.has(term)) terms.push(stemOf(term))
}

/** Adds pairs of neighbouring characters, or the only character. Marks stay with the character before them. */
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

/** Adds the words of a run of letters. `addUnspaced` adds those of scripts without spaces. */
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

const joiners = /[\p{Join_Control}\u00ad]/gu

/**
 * The text without zero-width joiners, zero-width non-joiners and soft hyphens. They are invisible within a word, and the
 * same word is also written without them.
 */
export const withoutJoiners = (text: string): string => text.replace(joiners, "")

/** Turkish writes `i` with and without a dot: `I` is a capital `ı`, and `İ` in lower case is `i` with a mark. */
const turkishI = /ı|i\u0307/gu

/** Normalised text in lower case. Every `i` is the same letter, because the case of a text must not matter. */
const plainOf = (text: string): string =>
  withoutJoiners(text).replace(stackedMarks, "$1").normalize("NFKC").toLowerCase().replace(turkishI, "i")

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

/** Letters of a word piece. */
export const pieceLength = 4
/** Number of leading pieces of a word. They match most inflected forms; the last piece is added to match compounds. */
const maxLeadingPieces = 3
/** Prefix of pieces of words in Latin script, which keeps them apart from English stems. No word contains it. */
export const pieceMark = "_"

/** Accents and points. Marks of other scripts, such as the vowel signs of Indic ones, are letters of their words. */
const accents =
  /(?:(?=\p{M})[\p{sc=Inherited}\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}])+/gu
const unaccented = (run: string): string => run.normalize("NFD").replace(accents, "").normalize("NFC")
const digit = /\p{N}/u
const han = /\p{Script=Han}/u

/** Adds overlapping pieces of four letters without accents, for inflected languages without a dictionary. */
const addPieces = (terms: Array<string>, run: string): void => {
  const whole = bounded(run)
  if (digit.test(whole)) terms.push(whole)
  else if (!isFunctionWord(whole)) {
    const isLatin = latin.test(unaccented(whole))
    const mark = isLatin ? pieceMark : ""
    // Short words in Latin script keep their accents, because they often differ in nothing else.
    const short = isLatin && Array.from(whole).length <= pieceLength
    const letters = short ? [whole] : Array.from(unaccented(whole))
    if (letters.length <= pieceLength) return void terms.push(mark + letters.join(""))
    const pieces = letters.length - pieceLength + 1
    for (let at = 0; at < pieces; at++) {
      if (at < maxLeadingPieces || at === pieces - 1)
        terms.push(mark + letters.slice(at, at + pieceLength).join(""))
    }
  }
}

/** {@link addPairs}, plus each Han character alone, because it is nearly always a word. */
const addCharacters = (terms: Array<string>, run: string): void => {
  addPairs(terms, run)
  if (!han.test(run)) return
  for (const character of run) if (han.test(character) && character !== run) terms.push(character)
}

const addEnglishOrPieces = (terms: Array<string>, run: string): void =>
  (latin.test(bounded(run)) || digit.test(run) ? addWord : addPieces)(terms, run)

/**
 * The word pieces of a text in any language: words of spaced scripts cut to four letters without accents, Han
 * characters alone and in pairs. With `english`, words in Latin script become terms as in {@link terms}.
 */
export const pieces = (text: string, { english }: { readonly english: boolean }): ReadonlyArray<string> => {
  if (english && ascii.test(text)) return terms(text)
  const found: Array<string> = []
  const add = english ? addEnglishOrPieces : addPieces
  for (const [run] of plainOf(text).matchAll(word)) addRun(found, run, add, addCharacters)
  return found
}

const quotedTerm = (term: string): string =>
  /['\\]/.test(term) ? `'${term.replaceAll("\\", "\\\\").replaceAll("'", "''")}'` : `'${term}'`

export interface TermVector {
  /** Text form of a `tsvector`, with positions. */
  readonly tsv: string
  /** Number of occurrences in it: the chunk's length in BM25. */
  readonly length: number
}

/** Input for PostgreSQL's `::tsvector`: each term with its positions, as many as a tsvector can hold. */
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
  const entries = Array.from(positions, ([term, places]) => `${quotedTerm(term)}:${places.join(",")}`)
  return { tsv: entries.join(" "), length }
}

const entry = /'((?:[^'\\]|''|\\\\)*)'(?::([\d,A-D]+))?/g

/** Calls `each` with every term of a tsvector's text form and its frequency. */
export const eachTerm = (tsv: string, each: (term: string, frequency: number) => void): void => {
  for (const [, term = "", positions = ""] of tsv.matchAll(entry)) {
    let frequency = 1
    for (let at = positions.indexOf(","); at >= 0; at = positions.indexOf(",", at + 1)) frequency++
    const plain =
      term.includes("'") || term.includes("\\") ? term.replace(/''|\\\\/g, (pair) => pair.charAt(0)) : term
    each(plain, frequency)
  }
}
