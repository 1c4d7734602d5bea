/**
 * Texts with separate formatting ranges. Until a part is sent, private-use characters mark the ranges: they survive
 * splitting into parts, and user input does not contain them.
 */
import { type Marks, markdownFormatter } from "./Markdown.ts"

/** None of them may be a placeholder of `Markdown`. */
const marks: Marks = { strong: "\ue001", emphasis: "\ue002", code: "\ue003", fence: "\ue004" }

const kindOfMark: ReadonlyMap<string, MarkedSpan["kind"]> = new Map([
  [marks.strong, "strong"],
  [marks.emphasis, "emphasis"],
  [marks.code, "code"],
  [marks.fence, "fence"]
])
const anyMark = /[\ue001-\ue004]/g

export interface MarkedSpan {
  readonly kind: "strong" | "emphasis" | "code" | "fence"
  /** In UTF-16 units. */
  readonly offset: number
  readonly length: number
}

const format = markdownFormatter(marks)

/** Converts a model's Markdown to text with marks. */
export const toMarkedText = (text: string): string => format(text.replace(anyMark, ""))

/** The text without marks, and the marked ranges. A mark that is not closed within the text has no range. */
export const parseMarkedText = (
  given: string
): { readonly text: string; readonly spans: ReadonlyArray<MarkedSpan> } => {
  let text = ""
  const openedAt = new Map<MarkedSpan["kind"], number>()
  const spans: Array<MarkedSpan> = []
  // A fence is on its own line, which is not part of the text.
  for (const character of given.replace(/\ue004\n?/g, "\ue004")) {
    const kind = kindOfMark.get(character)
    if (kind === undefined) {
      text += character
      continue
    }
    const from = openedAt.get(kind)
    openedAt.delete(kind)
    if (from === undefined) openedAt.set(kind, text.length)
    else if (text.length > from) spans.push({ kind, offset: from, length: text.length - from })
  }
  return { text, spans: spans.toSorted((a, b) => a.offset - b.offset || b.length - a.length) }
}
