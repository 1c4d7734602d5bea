/**
 * Similarity of two questions by their words alone, so that a match can be explained. The same words in the same order
 * are fully similar. Otherwise the share of common words decides, provided that numbers and negations are the same.
 */
import { isFunctionWord } from "./FunctionWords.ts"
import { terms, withoutJoiners } from "./Tokenizer.ts"
import { isSameSet } from "./Statements.ts"

/** Minimum share of common words of two questions with the same meaning. */
const minSimilarity = 0.8
/** Minimum number of common terms of questions that are not identical. */
const minCommonTerms = 2
/** Maximum length, in UTF-16 units, of texts that are compared with curated questions. */
const maxLength = 1_000

/** Function words that change the meaning of a question. Search ignores them. */
const meaningWords = new Set(
  (
    "no nor not never without before after until only except up down in out on off over under above below against more less " +
    "most least few from to first last t nicht kein keine keinen keiner keines ohne vor nach bis nur nie mehr weniger über " +
    "unter aus ein an auf ab gegen pas sans avant après jamais plus moins sin antes después nunca más menos"
  ).split(" ")
)

/** A word with the signs that distinguish names such as `C`, `C++` and `C#`. */
const wordWithSigns = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*[+#]{0,2}/gu

const wordsOf = (text: string): ReadonlyArray<string> =>
  Array.from(withoutJoiners(text).normalize("NFKC").toLowerCase().matchAll(wordWithSigns), ([found]) => found)

const numbersOf = (words: ReadonlyArray<string>) => new Set(words.filter((found) => /[\p{N}+#]/u.test(found)))
const meaningWordsOf = (words: ReadonlyArray<string>) =>
  new Set(words.filter((found) => meaningWords.has(found)))

/** True for a question of function words only, such as "Who are you?". No index has its words. */
export const hasOnlyFunctionWords = (question: string): boolean => {
  const words = wordsOf(question.slice(0, maxLength))
  return words.length > 0 && words.every(isFunctionWord)
}

/** 1 for the same question, at least {@link minSimilarity} for one with the same meaning, else 0. */
export const similarity = (asked: string, question: string): number => {
  if (asked.length > maxLength || question.length > maxLength) return 0
  const [one, other] = [wordsOf(asked), wordsOf(question)]
  if (one.length === 0) return 0
  if (one.join(" ") === other.join(" ")) return 1
  if (!isSameSet(numbersOf(one), numbersOf(other)) || !isSameSet(meaningWordsOf(one), meaningWordsOf(other)))
    return 0
  const [left, right] = [new Set(terms(asked)), new Set(terms(question))]
  const common = [...left].filter((term) => right.has(term)).length
  const share = (2 * common) / (left.size + right.size)
  return common >= minCommonTerms && share >= minSimilarity ? share : 0
}
