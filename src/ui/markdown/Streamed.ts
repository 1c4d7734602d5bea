/**
 * Prepares a streaming reply for rendering: text that may look different with the next character is held back, and
 * open marks are closed.
 */
import remend from "remend"

/** A last line that consists of marks may become a list, a heading, a rule or a fence. */
const undecidedLine = /(?:^|\n)[ \t>]*(?:[-+*=#~`_:]+|\d{1,9}[.)]?)[ \t]*$/u

const isRow = (line: string | undefined) => line !== undefined && line.trimStart().startsWith("|")

/** Number of last lines to hold back: a row of cells is the head of a table only with the line below it. */
const undecidedRows = (lines: ReadonlyArray<string>): number => {
  const [above, before, last = ""] =
    lines.length < 3 ? [undefined, lines.at(-2), lines.at(-1)] : lines.slice(-3)
  if (isRow(last) && !isRow(before)) return 1
  return isRow(before) && !isRow(above) && /^[ \t:|-]*$/u.test(last) ? 2 : 0
}

export const settled = (text: string): string => {
  const lines = text.split("\n")
  const decided = lines
    .slice(0, lines.length - undecidedRows(lines))
    .join("\n")
    .replace(undecidedLine, "")
    // The beginning of a mark or of a link's words, and words that may be a link's.
    .replace(/!?\[\d{0,3}$/u, "")
    .replace(/!?\[(?!\d{1,3}\])([^\][\n]{1,500})\]$/u, "$1")
    // Markers of emphasis at the end, which may open or close it. Open emphasis is closed below. Only the first marker
    // of a run begins a match: a long run elsewhere would otherwise be read again from each of its markers.
    .replace(/(?<![*_~`])[*_~`]+$/u, "")
  return remend(decided, {
    comparisonOperators: false,
    htmlTags: false,
    katex: false,
    linkMode: "text-only",
    singleTilde: false
  })
}
