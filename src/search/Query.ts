/**
 * Turns a query into terms. There are two forms of the same words, because the language that the answer is indexed in
 * is not known. Each form is scored against its own maximum, and the better score counts.
 */
import { isQuestionWord, withoutQuestionPhrases } from "./FunctionWords.ts"
import { pieces, terms, withoutJoiners, word } from "./Tokenizer.ts"

/** Distinct terms with their number of occurrences, which need not be whole. */
export type QueryForm = ReadonlyMap<string, number>

/** Maximum number of distinct terms of a form; the rest of a longer query is ignored. */
const maxFormTerms = 128

const counted = (found: ReadonlyArray<string>): QueryForm => {
  const form = new Map<string, number>()
  for (const term of found) {
    const before = form.get(term) ?? 0
    if (before > 0 || form.size < maxFormTerms) form.set(term, before + 1)
  }
  return form
}

const withoutQuestionWords = (text: string): string =>
  withoutQuestionPhrases(text).replace(word, (found) => (isQuestionWord(found.toLowerCase()) ? " " : found))

/** The query as English terms, and as word pieces where those differ. Empty when the query has only function words. */
const queryForms = (text: string): ReadonlyArray<QueryForm> => {
  const searchText = withoutQuestionWords(withoutJoiners(text))
  const words = terms(searchText)
  const queryText = words.length > 0 ? searchText : text
  const english = counted(words.length > 0 ? words : terms(text))
  const other = counted(pieces(queryText, { english: false }))
  const same = english.size === other.size && [...other.keys()].every((term) => english.has(term))
  return [english, ...(same ? [] : [other])].filter(({ size }) => size > 0)
}

/** The words of a query, as a search compares them with those of chunks. */
export interface QueryWords {
  readonly forms: ReadonlyArray<QueryForm>
  /** Number of distinct English terms of the query. */
  readonly termCount: number
}

/** Minimum number of distinct English terms of a long query. */
const minLongTerms = 7

/** A long query describes a subject. A shorter one mostly asks for one fact. */
export const isLong = ({ termCount }: Pick<QueryWords, "termCount">): boolean => termCount >= minLongTerms

/** The words of a query, and `further` English terms that are not counted. */
export const queryWords = (text: string, further?: QueryForm): QueryWords => {
  const forms = queryForms(text)
  const [english, ...others] = forms
  const termCount = english?.size ?? 0
  if (further === undefined || english === undefined) return { forms, termCount }
  const all = new Map(english)
  for (const [term, occurrences] of further) all.set(term, (all.get(term) ?? 0) + occurrences)
  return { forms: [all, ...others], termCount }
}
