/** Converts the lines of a PDF to Markdown: headings by font height, paragraphs by the gaps between lines. */

/** A line with its position on the page, in points. */
export interface PdfLine {
  readonly text: string
  readonly height: number
  /** Distance from the page's bottom to the baseline. */
  readonly baseline: number
}
export type PdfPage = ReadonlyArray<PdfLine>

/** Finds running heads and page numbers: lines that are repeated on each page and differ only in digits. */
const fingerprint = (line: PdfLine): string => line.text.replace(/\d+/g, "0")

const edges = (page: PdfPage): ReadonlyArray<PdfLine> => {
  const [first, last] = [page.at(0), page.at(-1)]
  return [first, last === first ? undefined : last].filter((line) => line !== undefined)
}

const runningLines = (pages: ReadonlyArray<PdfPage>): ReadonlySet<string> => {
  const counts = new Map<string, number>()
  for (const page of pages) {
    for (const mark of new Set(edges(page).map(fingerprint))) counts.set(mark, (counts.get(mark) ?? 0) + 1)
  }
  const written = pages.filter((page) => page.length > 2).length
  return new Set([...counts].filter(([, count]) => count > 3 && count > written * 0.6).map(([mark]) => mark))
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
  readonly running: ReadonlySet<string>
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
  const outer = new Set(edges(page))
  const lines = page.filter((line) => !outer.has(line) || !layout.running.has(fingerprint(line)))
  for (const line of lines) {
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
