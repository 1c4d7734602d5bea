/** The search of the documentation: sections that have every word of a question, best first. */

export interface Section {
  readonly href: string
  /** Title of its page. */
  readonly page: string
  readonly heading: string
  readonly text: string
}

const maxFound = 20
/** Words of a question that say nothing about its subject. */
const fillers =
  /^(?:a|an|and|are|can|do|does|for|how|i|in|is|it|my|of|on|or|the|to|what|when|where|which|who|why|with)$/u

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []

/** How often a word of `words` begins with `asked`. */
const countOf = (words: ReadonlyArray<string>, asked: string): number =>
  words.filter((word) => word.startsWith(asked)).length

/** Words of headings count more than words of the text, and a rare match more than the length of a section. */
export const find = (sections: ReadonlyArray<Section>, question: string): ReadonlyArray<Section> => {
  const words = wordsOf(question)
  const subject = words.filter((word) => !fillers.test(word))
  const asked = subject.length > 0 ? subject : words
  if (asked.length === 0) return []
  return sections
    .flatMap((section) => {
      const [heading, page, text] = [section.heading, section.page, section.text].map(wordsOf)
      const scores = asked.map(
        (word) =>
          10 * Math.min(1, countOf(heading ?? [], word)) +
          4 * Math.min(1, countOf(page ?? [], word)) +
          Math.log1p(countOf(text ?? [], word))
      )
      return scores.includes(0) ? [] : [{ section, score: scores.reduce((sum, score) => sum + score, 0) }]
    })
    .toSorted((one, other) => other.score - one.score)
    .slice(0, maxFound)
    .map(({ section }) => section)
}
