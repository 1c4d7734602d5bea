/**
 * The part of a streaming reply that can be rendered. Text that the next character may turn into something else is held
 * back, and open markers are closed.
 */
import remend from "remend"

/** A last line of markers alone may become a list, a heading, a rule or a fence. */
const ambiguousLine = /(?:^|\n)[ \t>]*(?:[-+*=#~`_:]+|\d{1,9}[.)]?)[ \t]*$/u

const isRow = (line: string | undefined) => line !== undefined && line.trimStart().startsWith("|")

/** Number of last lines to hold back. A row of cells is the head of a table only with the line below it. */
const ambiguousRowCount = (lines: ReadonlyArray<string>): number => {
  const [above, before, last = ""] =
    lines.length < 3 ? [undefined, lines.at(-2), lines.at(-1)] : lines.slice(-3)
  if (isRow(last) && !isRow(before)) return 1
  return isRow(before) && !isRow(above) && /^[ \t:|-]*$/u.test(last) ? 2 : 0
}

export const stablePrefix = (text: string): string => {
  const lines = text.split("\n")
  const stable = lines
    .slice(0, lines.length - ambiguousRowCount(lines))
    .join("\n")
    .replace(ambiguousLine, "")
    // The beginning of a citation or of a link, and text in brackets that may become a link.
    .replace(/!?\[\d{0,3}$/u, "")
    .replace(/!?\[(?!\d{1,3}\])([^\][\n]{1,500})\]$/u, "$1")
    // Markers at the end, which may open or close emphasis; `remend` closes what is open. The lookbehind keeps this
    // linear: without it, a long run of markers would be scanned again from each of them.
    .replace(/(?<![*_~`])[*_~`]+$/u, "")
  return remend(stable, {
    comparisonOperators: false,
    htmlTags: false,
    katex: false,
    linkMode: "text-only",
    singleTilde: false
  })
}
