/** The content words of a question, and their weights in texts, by the same terms as search. */
import {
  isForeignWord,
  isFunctionWord,
  isQuestionWord,
  isVague,
  withoutQuestionPhrases
} from "../../../search/FunctionWords.ts"
import { isEnglish } from "../../../search/Language.ts"
import {
  pieceLength,
  pieces,
  terms,
  unspacedCharacter,
  withoutJoiners,
  word
} from "../../../search/Tokenizer.ts"

/** A word of the question, which is matched by its English stem, or by most of its pieces. */
export interface AskedWord {
  readonly stem: string
  readonly pieces: ReadonlyArray<string>
  /**
   * A pair of Han characters counts as two words: without spaces it is usually a word, and rarely matches by chance. So
   * does a word of a question that is not English: the search has compared words alone.
   */
  readonly count: number
}

/** Maximum number of words of a question that are considered. */
const maxWords = 64
const hanPair = /^\p{Script=Han}{2}$/u

/** The Arabic article, which is written as a part of the word. */
const article = /^ال(?=\p{L}{3})/u

/** The distinct content words of a question. Text without spaces is split into pairs of characters. */
export const askedWords = (question: string): ReadonlyArray<AskedWord> => {
  const askedByStem = new Map<string, AskedWord>()
  const isForeignQuestion = isEnglish(question) === false
  for (const [written] of withoutQuestionPhrases(withoutJoiners(question)).matchAll(word)) {
    const run = written.replace(article, "")
    const lower = run.toLowerCase()
    if (isQuestionWord(lower) || isVague(lower)) continue
    if (isForeignWord(lower) || (isForeignQuestion && isFunctionWord(lower))) continue
    const stems = terms(run)
    const parts = stems.length === 1 ? pieces(run, { english: false }) : []
    const isForeign = isForeignQuestion && !unspacedCharacter.test(run)
    // A word of four letters is a piece of its longer forms. In English it begins other words, too.
    const hasPieces = parts.length > 1 || (isForeignQuestion && lower.length === pieceLength)
    for (const stem of stems) {
      if (!isVague(stem) && askedByStem.size < maxWords)
        askedByStem.set(stem, {
          stem,
          pieces: hasPieces ? parts : [],
          count: hanPair.test(stem) || isForeign ? 2 : 1
        })
    }
  }
  return [...askedByStem.values()]
}

/** All terms of a text in any language. */
export const termsOf = (text: string): ReadonlySet<string> =>
  new Set([...terms(text), ...pieces(text, { english: false })])

/** Whether a text with these terms contains the word. */
export const containsWord = (text: ReadonlySet<string>, { pieces: parts, stem }: AskedWord): boolean =>
  text.has(stem) || (parts.length > 0 && parts.filter((part) => text.has(part)).length * 2 > parts.length)

/**
 * The weight of each word: higher for rare ones. A word that all texts contain still counts, because the search found
 * them by it.
 */
export const weightsOf = (
  words: ReadonlyArray<AskedWord>,
  texts: ReadonlyArray<ReadonlySet<string>>
): ReadonlyMap<AskedWord, number> =>
  new Map(
    words.map((asked) => {
      const textCount = texts.filter((text) => containsWord(text, asked)).length
      return [asked, 1 + Math.log(1 + (texts.length - textCount + 0.5) / (textCount + 0.5)) / 2]
    })
  )
