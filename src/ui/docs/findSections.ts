/** The search of the documentation: sections that have every word of a query, best first. */

export interface Section {
  readonly href: string
  /** Title of its page. */
  readonly page: string
  readonly heading: string
  readonly text: string
}

const maxResults = 20
const stopWords =
  /^(?:a|an|and|are|can|do|does|for|how|i|in|is|it|my|of|on|or|the|to|what|when|where|which|who|why|with)$/u

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []

/** Number of words that begin with `term`. */
const prefixCount = (words: ReadonlyArray<string>, term: string): number =>
  words.filter((word) => word.startsWith(term)).length

/**
 * Matches in headings count more than matches in the text. Repeated matches add little, so that long sections have no
 * advantage.
 */
export const findSections = (sections: ReadonlyArray<Section>, query: string): ReadonlyArray<Section> => {
  const words = wordsOf(query)
  const keywords = words.filter((word) => !stopWords.test(word))
  const terms = keywords.length > 0 ? keywords : words
  if (terms.length === 0) return []
  return sections
    .flatMap((section) => {
      const [heading, page, text] = [section.heading, section.page, section.text].map(wordsOf)
      const scores = terms.map(
        (word) =>
          10 * Math.min(1, prefixCount(heading ?? [], word)) +
          4 * Math.min(1, prefixCount(page ?? [], word)) +
          Math.log1p(prefixCount(text ?? [], word))
      )
      return scores.includes(0) ? [] : [{ section, score: scores.reduce((sum, score) => sum + score, 0) }]
    })
    .toSorted((one, other) => other.score - one.score)
    .slice(0, maxResults)
    .map(({ section }) => section)
}
