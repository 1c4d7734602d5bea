/** Splits a text of any language into sentences. Linear in its length. */

export interface Span {
  /** UTF-16 units from the beginning of the text; `end` is not part of it. */
  readonly start: number
  readonly end: number
}

/**
 * The end of a line, or of a sentence with closing marks and citation marks. A full stop must be followed by a space.
 */
const sentenceEnds =
  /\n|[.!?…]["'”’»)\]*_]{0,4}(?:[ \t]{0,2}\[\d{1,3}\]){0,8}(?=\s|$)|[。！？｡।॥۔؟።]["'”’»」』）]{0,4}(?:[ \t]{0,2}\[\d{1,3}\]){0,8}/gu
/**
 * A full stop after one of these does not end a sentence: one letter, a common abbreviation, or the number of a list
 * item.
 */
const abbreviation =
  /(?:^|[\s([])(?:\p{L}|e\.g|i\.e|z\.B|d\.h|bzw|vgl|ca|Nr|No|Dr|Mr|Mrs|Ms|St|vs|etc|approx|Fig|\d{1,3})$/u

const trimmed = (text: string, start: number, end: number): Span => {
  let from = start
  let to = end
  while (from < to && /\s/u.test(text.charAt(from))) from++
  while (to > from && /\s/u.test(text.charAt(to - 1))) to--
  return { start: from, end: to }
}

/** The sentences of `text` in order, without surrounding white space. */
export const sentencesOf = (text: string): ReadonlyArray<Span> => {
  const found: Array<Span> = []
  let start = 0
  const add = (end: number) => {
    const span = trimmed(text, start, end)
    if (span.end > span.start) found.push(span)
    start = end
  }
  for (const match of text.matchAll(sentenceEnds)) {
    const end = match.index + match[0].length
    if (match[0] === "." && abbreviation.test(text.slice(Math.max(start, match.index - 12), match.index)))
      continue
    add(end)
  }
  add(text.length)
  return found
}
