/** Joins the runs of text of a PDF page to lines, in the order in which they are read. */
import * as Schema from "effect/Schema"
import type { PdfLine, PdfPage } from "./PdfLayout.ts"

const Item = Schema.Struct({
  str: Schema.String,
  transform: Schema.Array(Schema.Number),
  width: Schema.Number,
  height: Schema.Number,
  hasEOL: Schema.Boolean
})
type Item = typeof Item.Type
const isItem = Schema.is(Item)

/** The height of a vertical run is its length. Its font's height is that of the others. */
const withFontHeight = (item: Item): Item => {
  const [, , across = 0, up = 0] = item.transform
  return { ...item, height: Math.min(item.height, Math.hypot(across, up)) }
}

/** Joins the text runs of one line. A gap between two runs becomes a space. */
const lineOf = (items: ReadonlyArray<Item>): PdfLine => {
  const parts: Array<string> = []
  let end = Number.NEGATIVE_INFINITY
  for (const { str, transform, width, height } of items) {
    const start = transform[4] ?? 0
    if (parts.length > 0 && start - end > height * 0.25) parts.push(" ")
    parts.push(str)
    end = start + width
  }
  const text = parts.join("").replaceAll("\0", "").replace(/\s+/g, " ").trim()
  const height = items.reduce((max, item) => Math.max(max, item.str.trim() === "" ? 0 : item.height), 0)
  return { text, height, baseline: items[0]?.transform[5] ?? 0 }
}

/** A run ends its line when it says so, or when the next one has another baseline. */
const runsByLine = (items: ReadonlyArray<Item>): ReadonlyArray<ReadonlyArray<Item>> => {
  const lines: Array<ReadonlyArray<Item>> = []
  let runs: Array<Item> = []
  items.forEach((item, index) => {
    runs.push(item)
    const next = items[index + 1]
    const isNewLine =
      next !== undefined &&
      Math.abs((next.transform[5] ?? 0) - (item.transform[5] ?? 0)) > Math.max(2, item.height / 2)
    if (item.hasEOL || isNewLine || next === undefined) {
      lines.push(runs)
      runs = []
    }
  })
  return lines
}

/** A stretch of a line, in points from the left. */
interface Span {
  readonly start: number
  readonly end: number
  readonly line: PdfLine
}

const spanOf = (runs: ReadonlyArray<Item>): Span => {
  const words = runs.filter(({ str }) => str.trim() !== "")
  const last = words.at(-1)
  return {
    start: words[0]?.transform[4] ?? 0,
    end: (last?.transform[4] ?? 0) + (last?.width ?? 0),
    line: lineOf(runs)
  }
}

/** A line, and its two parts if it has exactly one gap that is wide enough to be one between columns. */
interface Row {
  readonly whole: Span
  readonly parts: readonly [Span, Span] | undefined
}

/** In points. */
const minColumnGap = 8

const rowOf = (runs: ReadonlyArray<Item>): Row => {
  const gaps: Array<number> = []
  let end = Number.POSITIVE_INFINITY
  runs.forEach(({ height, str, transform, width }, index) => {
    if (str.trim() === "") return
    const start = transform[4] ?? 0
    if (start - end >= Math.max(minColumnGap, height)) gaps.push(index)
    end = start + width
  })
  const [gap] = gaps
  const parts =
    gap === undefined || gaps.length > 1
      ? undefined
      : ([spanOf(runs.slice(0, gap)), spanOf(runs.slice(gap))] as const)
  return { whole: spanOf(runs), parts }
}

/** Minimum number of lines across two columns. */
const minColumnLines = 6
/** Minimum share of the lines of a column of prose that have at least {@link fullLineShare} of its width. */
const minFullLines = 0.7
const fullLineShare = 0.8
/** Minimum words of a line of a column, on average. */
const minColumnWords = 4

/** Cells of a table are shorter, or differ in their length, and aligned parts of program code have few words. */
const isProse = (column: ReadonlyArray<Span>): boolean => {
  const start = column.reduce((min, span) => Math.min(min, span.start), Number.POSITIVE_INFINITY)
  const end = column.reduce((max, span) => Math.max(max, span.end), 0)
  const full = column.filter((span) => span.end - span.start >= (end - start) * fullLineShare).length
  const words = column.reduce((sum, { line }) => sum + line.text.split(" ").length, 0)
  return full >= column.length * minFullLines && words >= column.length * minColumnWords
}

/** Consecutive lines with a common gap between their parts, which is from `end` to `start`. */
class Block {
  readonly #rows: Array<Row> = []
  readonly #columns: readonly [Array<Span>, Array<Span>] = [[], []]
  #splitLines = 0
  #end = Number.NEGATIVE_INFINITY
  #start = Number.POSITIVE_INFINITY

  /** False if the row does not belong to the block. */
  add(row: Row): boolean {
    const { whole, parts } = row
    const previous = this.#rows.at(-1)?.whole.line
    if (previous !== undefined) {
      const distance = previous.baseline - whole.line.baseline
      if (distance < 0 || distance > previous.height * 2) return false
    }
    const [left, right] = this.#columns
    if (parts === undefined) {
      if (previous === undefined || (whole.end > this.#end && whole.start < this.#start)) return false
      ;(whole.end <= this.#end ? left : right).push(whole)
    } else {
      const end = Math.max(this.#end, parts[0].end)
      const start = Math.min(this.#start, parts[1].start)
      if (start - end < minColumnGap) return false
      this.#end = end
      this.#start = start
      left.push(parts[0])
      right.push(parts[1])
      this.#splitLines++
    }
    this.#rows.push(row)
    return true
  }

  lines(): ReadonlyArray<PdfLine> {
    const areColumns = this.#splitLines >= minColumnLines && this.#columns.every(isProse)
    const spans = areColumns ? this.#columns.flat() : this.#rows.map(({ whole }) => whole)
    return spans.map(({ line }) => line)
  }
}

/**
 * The lines of a page. Where lines were drawn across two columns of prose, those of the left column come first. A wider
 * distance between lines ends the columns, as it does between the rows of a table.
 */
export const linesOf = (items: ReadonlyArray<unknown>): PdfPage => {
  const lines: Array<PdfLine> = []
  let block = new Block()
  for (const runs of runsByLine(items.filter(isItem).map(withFontHeight))) {
    const row = rowOf(runs)
    if (row.whole.line.text === "" || block.add(row)) continue
    lines.push(...block.lines())
    block = new Block()
    if (!block.add(row)) lines.push(row.whole.line)
  }
  return [...lines, ...block.lines()]
}
