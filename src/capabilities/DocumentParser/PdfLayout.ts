/** Converts the lines of a PDF to Markdown: headings by font height, paragraphs by the gaps between lines. */

/** A line with its position on the page, in points. */
export interface PdfLine {
  readonly text: string
  readonly height: number
  /** Distance from the page's bottom to the baseline. */
  readonly baseline: number
}
export type PdfPage = ReadonlyArray<PdfLine>

const edges = (page: PdfPage): ReadonlyArray<PdfLine> => {
  const [first, last] = [page.at(0), page.at(-1)]
  return [first, last === first ? undefined : last].filter((line) => line !== undefined)
}

interface EdgeLine {
  readonly line: PdfLine
  readonly page: number
  /** Its numbers as they are written; none of a line that is too long for a running head. */
  readonly numbers: ReadonlyArray<string>
}

/** A longer line must be the same on each page. */
const maxRunningCharacters = 200
/** Page numbers are shorter. */
const maxPageDigits = 6

/** The two readings of a number: the same on each page, or as far from the page's number. */
const readings = ({ numbers, page }: EdgeLine, place: number): ReadonlyArray<string> => {
  const digits = numbers[place] ?? ""
  return digits.length > maxPageDigits ? [digits] : [digits, `page + ${Number(digits) - page}`]
}

const mostFrequent = (values: ReadonlyArray<string>): string => {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].reduce((best, next) => (next[1] > best[1] ? next : best), ["", 0])[0]
}

/** The lines whose numbers are each read as most of the others. All differ only in digits. */
const alike = (lines: ReadonlyArray<EdgeLine>): ReadonlyArray<EdgeLine> => {
  let rest = lines
  for (const place of lines[0]?.numbers.keys() ?? []) {
    const common = mostFrequent(rest.flatMap((line) => readings(line, place)))
    rest = rest.filter((line) => readings(line, place).includes(common))
  }
  return rest
}

/**
 * Running heads and page numbers: first and last lines that are the same on most pages, or whose numbers follow the
 * number of the page. Other numbers, as that of an invoice, are text.
 */
const runningLines = (pages: ReadonlyArray<PdfPage>): ReadonlySet<PdfLine> => {
  const similar = new Map<string, Array<EdgeLine>>()
  for (const [place, page] of pages.entries()) {
    for (const line of edges(page)) {
      const isShort = line.text.length <= maxRunningCharacters
      const shape = isShort ? line.text.replace(/\d+/g, "0") : line.text
      const lines = similar.get(shape) ?? []
      if (lines.length === 0) similar.set(shape, lines)
      lines.push({ line, page: place + 1, numbers: (isShort && line.text.match(/\d+/g)) || [] })
    }
  }
  const written = pages.filter((page) => page.length > 2).length
  const running = new Set<PdfLine>()
  for (const lines of similar.values()) {
    const repeated = alike(lines)
    const count = new Set(repeated.map(({ page }) => page)).size
    if (count > 3 && count > written * 0.6) for (const { line } of repeated) running.add(line)
  }
  return running
}

const rounded = (height: number): number => Math.round(height * 2) / 2

/** The font height of most characters. */
const bodyHeight = (pages: ReadonlyArray<PdfPage>): number => {
  const characters = new Map<number, number>()
  for (const { height, text } of pages.flat()) {
    characters.set(rounded(height), (characters.get(rounded(height)) ?? 0) + text.length)
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
    .map(({ height }) => rounded(height))
  return [...new Set(heights)].toSorted((a, b) => b - a).slice(0, 3)
}

/** Joins lines to one text, and words that were hyphenated at a line end. */
const joinedLines = (lines: ReadonlyArray<string>): string =>
  lines
    .map((line, place) => {
      const next = lines[place + 1]
      if (next === undefined) return line
      return /\p{L}-$/u.test(line.slice(-3)) && /^\p{Ll}/u.test(next) ? line.slice(0, -1) : `${line} `
    })
    .join("")

/** Escapes text that would look like a Markdown heading. */
const escapedParagraph = (paragraph: string): string =>
  /^#{1,6} /.test(paragraph) ? `\\${paragraph}` : paragraph

interface Layout {
  readonly body: number
  readonly levels: ReadonlyArray<number>
  readonly running: ReadonlySet<PdfLine>
}

const levelOf = ({ height, text }: PdfLine, { levels }: Layout): number =>
  text.length > maxHeadingCharacters ? 0 : levels.indexOf(rounded(height)) + 1

/** True when `next` begins a paragraph: the gap is wider than the line distance, or it begins another column. */
const breaks = (previous: PdfLine | undefined, next: PdfLine): boolean => {
  if (previous === undefined) return true
  const gap = previous.baseline - next.baseline
  return gap < -next.height || gap > Math.max(previous.height, next.height) * 1.75
}

const pageBlocks = (page: PdfPage, number: number, layout: Layout): ReadonlyArray<string> => {
  const blocks: Array<string> = []
  const place = `###### Page ${number}`
  /** The heading level of the collected lines; 0 for a paragraph. */
  let open = 0
  let gathered: Array<string> = []
  let previous: PdfLine | undefined
  const flush = () => {
    const text = joinedLines(gathered)
    if (open > 0) blocks.push(`${"#".repeat(open)} ${text}`, place)
    else if (text !== "") blocks.push(escapedParagraph(text))
    open = 0
    gathered = []
  }
  for (const line of page) {
    if (layout.running.has(line)) continue
    const level = levelOf(line, layout)
    if (level !== open || (level === 0 && breaks(previous, line))) flush()
    open = level
    gathered.push(line.text)
    previous = line
  }
  flush()
  if (blocks.length === 0) return []
  return blocks[1] === place && blocks[0]?.startsWith("#") ? blocks : [place, ...blocks]
}

/**
 * The whole text. Every section begins with a sixth-level heading that names its page, so that each chunk's heading
 * path contains the page. `title` is the first heading, or empty.
 */
export const layOut = (
  pages: ReadonlyArray<PdfPage>
): { readonly title: string; readonly content: string } => {
  const body = bodyHeight(pages)
  const layout = { body, levels: headingHeights(pages, body), running: runningLines(pages) }
  const title = pages.flat().find((line) => levelOf(line, layout) === 1)?.text ?? ""
  const blocks = pages.flatMap((page, place) => pageBlocks(page, place + 1, layout))
  return { title, content: blocks.join("\n\n") }
}
