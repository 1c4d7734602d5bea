/** Whether a text is English, which stems and the built-in embedding model are made for. */
import { isEnglishWord, isForeignWord } from "./FunctionWords.ts"

/** UTF-16 units of a text that are looked at. */
const sampleLength = 20_000
/** Function words of one language more than of others from which a text speaks for itself. */
const certain = 2

const fence = /^[ \t]*(`{3,}|~{3,})[\s\S]*?(?:^[ \t]*\1|$(?![\s\S]))/gm
const code = /`[^`\n]*`/g
const word = /[\p{L}\p{M}]+/gu
const latin = /^[\p{Script=Latin}\p{M}]+$/u

/**
 * What the words of a text say: true for English, false for another language, undefined where they do not tell. Code is
 * passed over, for its keywords are English everywhere.
 */
export const isEnglish = (text: string): boolean | undefined => {
  const prose = text.slice(0, sampleLength).replace(fence, "\n").replace(code, " ").toLowerCase()
  let english = 0
  let foreign = 0
  let latinLetters = 0
  let otherLetters = 0
  for (const [found] of prose.matchAll(word)) {
    if (!latin.test(found)) otherLetters += found.length
    else {
      latinLetters += found.length
      if (isEnglishWord(found)) english++
      else if (isForeignWord(found)) foreign++
    }
  }
  if (otherLetters > latinLetters) return false
  return Math.abs(english - foreign) < certain ? undefined : english > foreign
}

/** Whether a query may be compared with English texts by its meaning: unless it is plainly of another language. */
export const mayBeEnglish = (query: string): boolean => isEnglish(query) !== false
