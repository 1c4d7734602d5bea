/** Whether a text is English, which stems and the built-in embedding model are made for. */
import { isEnglishWord, isForeignWord } from "./FunctionWords.ts"

/** UTF-16 units of a text that are looked at. */
const sampleLength = 20_000
/** Function words of one language more than of others from which a text speaks for itself. */
const certain = 2

const fence = /^ {0,12}(?:```|~~~)/
const word = /[\p{L}\p{M}]+/gu
const latin = /^[\p{Script=Latin}\p{M}]+$/u
const plainLatin = /^[a-z]+$/

/** Without fences and without what stands between backticks. */
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
 * What the words of a text say: true for English, false for another language, undefined where they do not tell. Words with
 * letters that English lacks tell of another language where no word is English: short texts have few function words. Code
 * is passed over, for its keywords are English everywhere.
 */
export const isEnglish = (text: string): boolean | undefined => {
  let english = 0
  let foreign = 0
  let marked = 0
  let latinLetters = 0
  let otherLetters = 0
  for (const [found] of proseOf(text.slice(0, sampleLength)).toLowerCase().matchAll(word)) {
    if (!latin.test(found)) otherLetters += found.length
    else {
      latinLetters += found.length
      if (isEnglishWord(found)) english++
      else if (isForeignWord(found)) foreign++
      else if (!plainLatin.test(found)) marked++
    }
  }
  if (otherLetters > latinLetters) return false
  if (english === 0 && foreign + marked >= certain) return false
  return Math.abs(english - foreign) < certain ? undefined : english > foreign
}

/** Whether a query may be compared with English texts by its meaning: unless it is plainly of another language. */
export const mayBeEnglish = (query: string): boolean => isEnglish(query) !== false
