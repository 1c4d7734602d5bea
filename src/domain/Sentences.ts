/** Splits a text of any language into sentences. Linear in its length. */

export interface Span {
  /** UTF-16 units from the beginning of the text; `end` is not part of it. */
  readonly start: number
  readonly end: number
}

/** A line's end, or the end of a sentence with what closes it and the marks of its sources; a full stop needs a blank after it. */
const ends =
  /\n|[.!?…]["'”’»)\]*_]{0,4}(?:[ \t]{0,2}\[\d{1,3}\]){0,8}(?=\s|$)|[。！？]["'”’」』）]{0,4}(?:\[\d{1,3}\]){0,8}/gu
/** A full stop after it ends no sentence: one letter, or a usual abbreviation, or the number of a list. */
const abbreviation =
  /(?:^|[\s([])(?:\p{L}|e\.g|i\.e|z\.B|d\.h|bzw|vgl|ca|Nr|No|Dr|Mr|Mrs|Ms|St|vs|etc|approx|Fig|\d{1,3})$/u

const trimmed = (text: string, start: number, end: number): Span => {
  let from = start
  let to = end
  while (from < to && /\s/u.test(text.charAt(from))) from++
  while (to > from && /\s/u.test(text.charAt(to - 1))) to--
  return { start: from, end: to }
}

/** The sentences of `text` in order, without the blanks around them. */
export const sentencesOf = (text: string): ReadonlyArray<Span> => {
  const found: Array<Span> = []
  let start = 0
  const add = (end: number) => {
    const span = trimmed(text, start, end)
    if (span.end > span.start) found.push(span)
    start = end
  }
  for (const match of text.matchAll(ends)) {
    const end = match.index + match[0].length
    const isStop = match[0].startsWith(".")
    if (
      isStop &&
      match[0] === "." &&
      abbreviation.test(text.slice(Math.max(start, match.index - 12), match.index))
    )
      continue
    add(end)
  }
  add(text.length)
  return found
}
