/** A document as sections under their heading paths, and a section as blocks: paragraphs, code fences, tables. */

export type Format = "markdown" | "text"

export interface Block {
  /** A fence or table loses its meaning when it is cut; a paragraph does not. */
  readonly whole: boolean
  readonly text: string
}

export interface Section {
  /** Path of headings, `A > B`; empty before the first one. */
  readonly heading: string
  readonly blocks: ReadonlyArray<Block>
}

/** A longer heading line is a paragraph: it would be repeated beside every chunk below it. */
const maxHeading = 200

interface Heading {
  readonly level: number
  readonly text: string
}

const countLeading = (text: string, character: string): number => {
  let count = 0
  while (text[count] === character) count++
  return count
}

const toHeading = (line: string): Heading | undefined => {
  const text = line.trim()
  const level = countLeading(text, "#")
  if (level < 1 || level > 6 || countLeading(line, " ") > 3 || line.startsWith("\t")) return undefined
  if (text.length > maxHeading || !/^\s/.test(text.slice(level))) return undefined
  // A row of # after the text closes the heading.
  const [, title = ""] = /^(.*?)(?:\s#+)?$/.exec(text.slice(level).trim()) ?? []
  return title === "" ? undefined : { level, text: title.trim() }
}

interface Fence {
  readonly mark: string
  readonly length: number
}

const opensFence = (line: string): Fence | undefined => {
  const text = line.trimStart()
  const mark = text[0] ?? ""
  const length = mark === "`" || mark === "~" ? countLeading(text, mark) : 0
  if (length < 3 || (mark === "`" && text.includes("`", length))) return undefined
  return { mark, length }
}

const closesFence = ({ mark, length }: Fence, line: string): boolean => {
  const text = line.trim()
  return text.length >= length && countLeading(text, mark) === text.length
}

/** Gathers lines into blocks, and blocks into sections. */
class Outline {
  readonly sections: Array<Section> = []
  readonly #title: string
  #path: Array<Heading> = []
  #blocks: Array<Block> = []
  #lines: Array<string> = []
  #whole = false
  /** Headings with nothing under them yet, as they were written. */
  #bare: Array<{ readonly heading: Heading; readonly line: string }> = []

  constructor(title: string) {
    this.#title = title.trim()
  }

  line(text: string, whole: boolean): void {
    if (whole !== this.#whole) this.endBlock()
    this.#whole = whole
    this.#lines.push(text)
  }

  endBlock(): void {
    const text = this.#lines.join("\n")
    if (text.trim() !== "") this.#blocks.push({ whole: this.#whole, text: this.#whole ? text : text.trim() })
    this.#lines = []
  }

  heading(heading: Heading, line: string): void {
    this.endSection()
    // A heading whose section stayed empty is kept as text, unless this one is below it: then it is in the path.
    this.#path = [...this.#path.filter(({ level }) => level < heading.level), heading]
    this.#bare.push({ heading, line: line.trim() })
  }

  endSection(): void {
    this.endBlock()
    if (this.#blocks.length === 0) return
    const lost = this.#bare.filter(({ heading }) => !this.#path.includes(heading))
    const carried = lost.map(({ line }): Block => ({ whole: false, text: line }))
    this.sections.push({ heading: this.#heading, blocks: [...carried, ...this.#blocks] })
    this.#blocks = []
    this.#bare = []
  }

  /** The last headings may have nothing under them: they end the section before. */
  end(): void {
    this.endSection()
    const bare = this.#bare.map(({ line }): Block => ({ whole: false, text: line }))
    const last = this.sections.pop()
    const blocks = [...(last?.blocks ?? []), ...bare]
    if (blocks.length > 0) this.sections.push({ heading: last?.heading ?? "", blocks })
  }

  get #heading(): string {
    const path = this.#path.map(({ text }) => text)
    // The document's own title is stored beside the chunk and not repeated in its path.
    return (path[0] === this.#title ? path.slice(1) : path).join(" > ")
  }
}

/** Lines between two places where whoever reads may pause. */
const pauseLines = 256

function* linesOf(content: string): Generator<string> {
  const end = /\r\n|\r|\n/g
  let from = 0
  for (let found = end.exec(content); found !== null; found = end.exec(content)) {
    yield content.slice(from, found.index)
    from = end.lastIndex
  }
  yield content.slice(from)
}

const markdownReader = (outline: Outline) => {
  let fence: Fence | undefined
  return (line: string): void => {
    if (fence !== undefined) {
      outline.line(line, true)
      if (closesFence(fence, line)) {
        fence = undefined
        outline.endBlock()
      }
      return
    }
    fence = opensFence(line)
    const heading = fence === undefined ? toHeading(line) : undefined
    if (heading !== undefined) outline.heading(heading, line)
    else if (line.trim() === "") outline.endBlock()
    else {
      if (fence !== undefined) outline.endBlock()
      outline.line(line, fence !== undefined || line.trimStart().startsWith("|"))
    }
  }
}

const textReader = (outline: Outline) => (line: string) => {
  if (line.trim() === "") outline.endBlock()
  else outline.line(line, false)
}

const reader = { markdown: markdownReader, text: textReader } as const

/**
 * ATX headings outside fences begin sections; blank lines end paragraphs. Plain text is one section of paragraphs.
 * Undefined says that nothing is ready yet, so that nobody has to wait for the end of a long document.
 */
export function* outlining(
  title: string,
  content: string,
  format: Format
): Generator<Section | undefined, void, void> {
  const outline = new Outline(title)
  const read = reader[format](outline)
  let lines = 0
  for (const line of linesOf(content)) {
    read(line)
    // The last section may still be added to, at the end.
    while (outline.sections.length > 1) yield outline.sections.shift()
    if (++lines % pauseLines === 0) yield undefined
  }
  outline.end()
  yield* outline.sections
}

/** As {@link outlining}, all at once: for texts of a few pages. */
export const sections = (title: string, content: string, format: Format): ReadonlyArray<Section> => {
  const found: Array<Section> = []
  for (const section of outlining(title, content, format)) if (section !== undefined) found.push(section)
  return found
}
