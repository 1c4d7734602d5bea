/** Decides whether a text is English. Stems and the built-in embedding model are made for English. */
import { isEnglishWord, isForeignWord } from "./FunctionWords.ts"
import { withoutJoiners } from "./Tokenizer.ts"

/** Maximum number of UTF-16 units of a text that are examined. */
const sampleLength = 20_000
/** Lead in function words that one language needs over the others for the text to count as certain. */
const minLead = 2

const fence = /^ {0,12}(?:```|~~~)/
const word = /[\p{L}\p{M}]+/gu
const latin = /^[\p{Script=Latin}\p{M}]+$/u
const plainLatin = /^[a-z]+$/

/** The text without fenced code and code spans. */
const proseOf = (text: string): string => {
  let inFence = false
  const kept: Array<string> = []
  for (const line of text.split("\n")) {
    if (fence.test(line)) inFence = !inFence
    else if (!inFence)
      kept.push(
        line
          .split("`")
          .filter((_, place) => place % 2 === 0)
          .join(" ")
      )
  }
  return kept.join("\n")
}

/**
 * Returns true for English, false for another language, and undefined where the words do not tell. Where no word is
 * English, words with letters that English lacks count as another language, because short texts have few function
 * words. Code is ignored, because its keywords are English in every language.
 */
export const isEnglish = (text: string): boolean | undefined => {
  let english = 0
  let foreign = 0
  let accented = 0
  let latinLetters = 0
  let otherLetters = 0
  for (const [found] of proseOf(withoutJoiners(text.slice(0, sampleLength)))
    .toLowerCase()
    .matchAll(word)) {
    if (!latin.test(found)) otherLetters += found.length
    else {
      latinLetters += found.length
      if (isEnglishWord(found)) english++
      else if (isForeignWord(found)) foreign++
      else if (!plainLatin.test(found)) accented++
    }
  }
  if (otherLetters > latinLetters) return false
  if (english === 0 && foreign + accented >= minLead) return false
  return Math.abs(english - foreign) < minLead ? undefined : english > foreign
}

/** Whether a query may be compared with English texts by meaning: true unless it is clearly in another language. */
export const mayBeEnglish = (query: string): boolean => isEnglish(query) !== false
