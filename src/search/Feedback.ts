/**
 * Relevance feedback: words that the first results of a long query have in common are added to the query, which is then
 * searched again. Texts on the subject of a query use further words. Results of short queries get worse by it
 * (docs/retrieval.md).
 */
import { indexTerms } from "./IndexRow.ts"
import { mayBeEnglish } from "./Language.ts"
import { type QueryForm, queryWords } from "./Query.ts"

/** Minimum number of distinct English terms of a query that is searched again. */
const minQueryTerms = 9
/** Number of results whose words are compared. */
export const feedbackResults = 10
/** Mean number of terms of these results below which they are too short to tell what the subject is. */
const minMeanTerms = 40
/** Maximum number of terms that are added. */
const maxAddedTerms = 30
/** Number of these results that must have a term. */
const minResultsWithTerm = 3
/** Share of the added terms in the occurrences of all terms of the query. */
const addedShare = 0.4

const plainWord = /^[a-z]{3,}$/

/** A result of the first search. */
export interface FirstResult {
  readonly title: string
  readonly heading: string
  readonly text: string
  readonly score: number
}

/** The English terms of a query that is searched again, else undefined. */
export const feedbackForm = (text: string): QueryForm | undefined => {
  if (!mayBeEnglish(text)) return undefined
  const words = queryWords(text)
  return words.termCount >= minQueryTerms ? words.forms[0] : undefined
}

/**
 * Terms to add to a query, with their occurrences: those of at least three of the first results, the most frequent ones.
 * A result counts by its score. Empty if the results are too few or too short.
 */
export const feedbackTerms = (form: QueryForm, first: ReadonlyArray<FirstResult>): QueryForm => {
  const results = first.slice(0, feedbackResults)
  const scoreSum = results.reduce((sum, { score }) => sum + score, 0)
  const shares = new Map<string, number>()
  const seen = new Map<string, number>()
  let length = 0
  for (const { score, text, ...context } of results) {
    const found = indexTerms({ ...context, content: text, english: true })
    length += found.length
    for (const term of found) {
      shares.set(term, (shares.get(term) ?? 0) + score / scoreSum / found.length)
    }
    for (const term of new Set(found)) seen.set(term, (seen.get(term) ?? 0) + 1)
  }
  if (length < minMeanTerms * results.length) return new Map()
  const common = [...shares]
    .filter(([term]) => (seen.get(term) ?? 0) >= minResultsWithTerm && plainWord.test(term))
    .toSorted(([one, its], [other, others]) => others - its || (one < other ? -1 : 1))
    .slice(0, maxAddedTerms)
  const sum = common.reduce((total, [, share]) => total + share, 0)
  const asked = [...form.values()].reduce((total, occurrences) => total + occurrences, 0)
  const added = (asked * addedShare) / (1 - addedShare)
  return new Map(common.map(([term, share]) => [term, (added * share) / sum]))
}
