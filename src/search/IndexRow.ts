/** The indexed terms of a chunk: its own words count once, those of title and headings three times. */
import { pieces, type TermVector, toTsvector } from "./Tokenizer.ts"

const contextWeight = 3
/**
 * Longer titles and heading paths are cut here, so that they do not outweigh the text; in terms, and in UTF-16 units.
 */
const maxContextTerms = 100
const maxContextLength = 2_000

export interface Indexable {
  readonly title: string
  /** Path of headings, `A > B`, or empty. */
  readonly heading: string
  readonly content: string
  readonly english: boolean
}

/** The terms of a chunk, repeats included. */
export const indexTerms = (chunk: Indexable): ReadonlyArray<string> => {
  const context = [chunk.title, chunk.heading].flatMap((text) =>
    pieces(text.slice(0, maxContextLength), chunk).slice(0, maxContextTerms)
  )
  const repeated = Array.from({ length: contextWeight }, () => context).flat()
  return [...repeated, ...pieces(chunk.content, chunk)]
}

/** The columns `tsv` (text form of a tsvector) and `length` of table `chunks`. */
export const indexRow = (chunk: Indexable): TermVector => toTsvector(indexTerms(chunk))
