/** Converts the lines of a PDF to Markdown: headings by font height, paragraphs by the gaps between lines. */

/** A line with its position on the page, in points. */
export interface PdfLine {
  readonly text: string
  readonly height: number
  /** Distance from the page's bottom to the baseline. */
  readonly baseline: number
}
export type PdfPage = ReadonlyArray<PdfLine>

const edgeLines = (page: PdfPage): ReadonlyArray<PdfLine> => {
  const [first, last] = [page.at(0), page.at(-1)]
  return [first, last === first ? undefined : last].filter((line) => line !== undefined)
}

interface EdgeLine {
  readonly line: PdfLine
  readonly page: number
  /** The numbers in its text; none for a line that is too long for a running head. */
  readonly numbers: ReadonlyArray<string>
}

/** Maximum length of a line whose numbers may differ between pages. */
const maxRunningCharacters = 200
/** A longer number is not a page number. */
const maxPageDigits = 6

/** The two readings of a number: as it is, or by its distance from the page's number. */
const readings = ({ numbers, page }: EdgeLine, index: number): ReadonlyArray<string> => {
  const digits = numbers[index] ?? ""
  return digits.length > maxPageDigits ? [digits] : [digits, `page + ${Number(digits) - page}`]
}

const mostFrequent = (values: ReadonlyArray<string>): string => {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].reduce((best, next) => (next[1] > best[1] ? next : best), ["", 0])[0]
}

/** Of lines that differ only in digits: those whose numbers have the most frequent readings. */
const linesWithCommonNumbers = (lines: ReadonlyArray<EdgeLine>): ReadonlyArray<EdgeLine> => {
  let rest = lines
  for (const index of lines[0]?.numbers.keys() ?? []) {
    const common = mostFrequent(rest.flatMap((line) => readings(line, index)))
    rest = rest.filter((line) => readings(line, index).includes(common))
  }
  return rest
}

/**
 * Running heads and page numbers: first and last lines that are the same on most pages, or whose numbers follow the
 * number of the page. Other numbers, as that of an invoice, are text.
 */
const runningLines = (pages: ReadonlyArray<PdfPage>): ReadonlySet<PdfLine> => {
  const similar = new Map<string, Array<EdgeLine>>()
  for (const [index, page] of pages.entries()) {
    for (const line of edgeLines(page)) {
      const isShort = line.text.length <= maxRunningCharacters
      const shape = isShort ? line.text.replace(/\d+/g, "0") : line.text
      const lines = similar.get(shape) ?? []
      if (lines.length === 0) similar.set(shape, lines)
      lines.push({ line, page: index + 1, numbers: (isShort && line.text.match(/\d+/g)) || [] })
    }
  }
  const pagesWithBody = pages.filter((page) => page.length > 2).length
  const running = new Set<PdfLine>()
  for (const lines of similar.values()) {
    const repeated = linesWithCommonNumbers(lines)
    const count = new Set(repeated.map(({ page }) => page)).size
    if (count > 3 && count > pagesWithBody * 0.6) for (const { line } of repeated) running.add(line)
  }
  return running
}

const roundHeight = (height: number): number => Math.round(height * 2) / 2

/** The font height of most characters. */
const bodyHeight = (pages: ReadonlyArray<PdfPage>): number => {
  const characters = new Map<number, number>()
  for (const { height, text } of pages.flat()) {
    characters.set(roundHeight(height), (characters.get(roundHeight(height)) ?? 0) + text.length)
  }
  return [...characters].reduce((best, next) => (next[1] > best[1] ? next : best), [0, 0])[0]
}

const maxHeadingCharacters = 200

/** Font heights of headings, the largest first. All levels below the third share one. */
const headingHeights = (pages: ReadonlyArray<PdfPage>, body: number): ReadonlyArray<number> => {
  const heights = pages
    .flat()
    .filter(
      ({ height, text }) => height > body * 1.15 && text.length <= maxHeadingCharacters && /\p{L}/u.test(text)
    )
    .map(({ height }) => roundHeight(height))
  return [...new Set(heights)].toSorted((a, b) => b - a).slice(0, 3)
}

const hyphenated = /\p{L}[-\u00ad\u2010]$/u
/** A character of a script without spaces between words, or its punctuation. */
const unspaced =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\uff01-\uff9f]/u
/** A line with at least this share of the characters of the longest one goes on in the next. */
const fullLineShare = 0.8

/** Joins lines to one text, and words that were hyphenated at a line end. */
const joinedLines = (lines: ReadonlyArray<string>): string => {
  const maxLineLength = lines.reduce((max, { length }) => Math.max(max, length), 0)
  return lines
    .map((line, index) => {
      const next = lines[index + 1]
      if (next === undefined) return line
      if (hyphenated.test(line.slice(-3)) && /^\p{Ll}/u.test(next)) return line.slice(0, -1)
      const [last = ""] = line.match(/.$/u) ?? []
      const [first = ""] = next.match(/^./u) ?? []
      const continues =
        line.length >= maxLineLength * fullLineShare && unspaced.test(last) && unspaced.test(first)
      return continues ? line : `${line} `
    })
    .join("")
}

/** Escapes text that would look like a Markdown heading. */
const escapedParagraph = (paragraph: string): string =>
  /^#{1,6} /.test(paragraph) ? `\\${paragraph}` : paragraph

interface Layout {
  readonly body: number
  readonly levels: ReadonlyArray<number>
  readonly running: ReadonlySet<PdfLine>
}

const levelOf = ({ height, text }: PdfLine, { levels }: Layout): number =>
  text.length > maxHeadingCharacters ? 0 : levels.indexOf(roundHeight(height)) + 1

/** True when `next` begins a paragraph: the gap is wider than the line distance, or it begins another column. */
const startsParagraph = (previous: PdfLine | undefined, next: PdfLine): boolean => {
  if (previous === undefined) return true
  const gap = previous.baseline - next.baseline
  return gap < -next.height || gap > Math.max(previous.height, next.height) * 1.75
}

const pageBlocks = (
  page: PdfPage,
  notes: ReadonlyArray<string>,
  number: number,
  layout: Layout
): ReadonlyArray<string> => {
  const blocks: Array<string> = []
  const pageHeading = `###### Page ${number}`
  /** The heading level of the collected lines; 0 for a paragraph. */
  let openLevel = 0
  let collected: Array<string> = []
  let previous: PdfLine | undefined
  const flush = () => {
    const text = joinedLines(collected)
    if (openLevel > 0) blocks.push(`${"#".repeat(openLevel)} ${text}`, pageHeading)
    else if (text !== "") blocks.push(escapedParagraph(text))
    openLevel = 0
    collected = []
  }
  for (const line of page) {
    if (layout.running.has(line)) continue
    const level = levelOf(line, layout)
    if (level !== openLevel || (level === 0 && startsParagraph(previous, line))) flush()
    openLevel = level
    collected.push(line.text)
    previous = line
  }
  flush()
  blocks.push(...notes.map(escapedParagraph))
  if (blocks.length === 0) return []
  return blocks[1] === pageHeading && blocks[0]?.startsWith("#") ? blocks : [pageHeading, ...blocks]
}

/**
 * The whole text. Every section begins with a sixth-level heading that names its page, so that each chunk's heading
 * path contains the page. `notes` are paragraphs at the end of a page, by its index. `title` is the first heading, or empty.
 */
export const layOut = (
  pages: ReadonlyArray<PdfPage>,
  notes: ReadonlyMap<number, ReadonlyArray<string>> = new Map()
): { readonly title: string; readonly content: string } => {
  const body = bodyHeight(pages)
  const layout = { body, levels: headingHeights(pages, body), running: runningLines(pages) }
  const title = pages.flat().find((line) => levelOf(line, layout) === 1)?.text ?? ""
  const blocks = pages.flatMap((page, index) => pageBlocks(page, notes.get(index) ?? [], index + 1, layout))
  return { title, content: blocks.join("\n\n") }
}
