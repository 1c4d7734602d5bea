/**
 * Splits a document into sections under their heading paths, and a section into blocks: paragraphs and lists, code,
 * tables.
 */
import { cleanHeading } from "./Heading.ts"
import {
  closesFence,
  closesHtmlCode,
  codeIndent,
  opensContainer,
  type Fence,
  type Heading,
  indentOf,
  isDelimiterRow,
  opensFence,
  opensHtmlCode,
  parseHeading,
  parseListMarker,
  underlinedHeading,
  underlineLevel
} from "./MarkdownLines.ts"

export type Format = "markdown" | "text"

export interface Block {
  /** Code and tables lose their meaning when they are cut; prose does not. */
  readonly kind: "prose" | "code" | "table"
  readonly text: string
  /** Positions in the text at which list items begin, without nested items. */
  readonly items: ReadonlyArray<number>
  /** Whether the block continues the last list item of the block before it. */
  readonly continues: boolean
}

type Kind = Block["kind"]

export interface Section {
  /** Path of headings, `A > B`; empty before the first one. */
  readonly heading: string
  readonly blocks: ReadonlyArray<Block>
  /** Whether this is a further part of the section before it, which was too long for one section. */
  readonly continues: boolean
}

/**
 * Maximum number of blocks of a section in memory, and of headings without content. A document of two million short
 * paragraphs would take 200 MB otherwise. Twice as many blocks when they belong to one list item.
 */
const maxBlocks = 4_096

const paragraph = (text: string): Block => ({ kind: "prose", text, items: [], continues: false })

/** Collects lines into blocks, and blocks into sections. */
class Outline {
  readonly sections: Array<Section> = []
  readonly #title: string
  #path: Array<Heading> = []
  #blocks: Array<Block> = []
  #lines: Array<string> = []
  #kind: Kind = "prose"
  #continues = false
  /** Whether an earlier part of the open section is already in `sections`. */
  #hasPart = false
  /** Indexes of the lines at which an item begins. */
  #items: Array<number> = []
  /** Headings that have no content yet, as they were written. */
  #emptyHeadings: Array<{ readonly heading: Heading; readonly line: string }> = []

  constructor(title: string) {
    this.#title = cleanHeading(title)
  }

  /** Whether a paragraph is open, which the next line continues. */
  get inParagraph(): boolean {
    return this.#kind === "prose" && this.#lines.length > 0
  }

  /** `continues`: whether the line belongs to the list item before it. */
  line(text: string, kind: Kind, continues = false): void {
    if (kind !== this.#kind) this.endBlock()
    if (this.#lines.length === 0) this.#continues = continues
    this.#kind = kind
    this.#lines.push(text)
  }

  /** Whether the lines of a table follow that has no pipes at its sides. */
  get inTable(): boolean {
    return this.#kind === "table" && this.#lines.length > 0
  }

  /** Makes the open paragraph a table, if it is one line with cells: the header. Returns whether it did. */
  makeTable(): boolean {
    const [header = "", ...others] = this.#lines
    const isHeader =
      this.inParagraph && others.length === 0 && this.#items.length === 0 && header.includes("|")
    if (isHeader) this.#kind = "table"
    return isHeader
  }

  /** Makes the open paragraph a heading, if it is one line. Returns whether it did. */
  makeHeading(level: 1 | 2): boolean {
    const [line = "", ...others] = this.#lines
    const isAlone = this.inParagraph && others.length === 0 && this.#items.length === 0 && !this.#continues
    const heading = isAlone ? underlinedHeading(line, level) : undefined
    if (heading === undefined) return false
    this.#lines = []
    this.heading(heading, `${"#".repeat(level)} ${line.trim()}`)
    return true
  }

  /** Adds the first line of an item. */
  item(text: string): void {
    if (this.#kind !== "prose") this.endBlock()
    this.#items.push(this.#lines.length)
    this.line(text, "prose")
  }

  endBlock(): void {
    const text = this.#lines.join("\n")
    if (text.trim() !== "") {
      const lineText = this.#kind === "prose" ? text.trim() : text
      if (this.#blocks.length >= maxBlocks * (this.#continues ? 2 : 1)) this.#endPart()
      this.#blocks.push({
        kind: this.#kind,
        text: lineText,
        items: this.#offsets(),
        continues: this.#continues
      })
    }
    this.#lines = []
    this.#items = []
    this.#continues = false
  }

  /** Offsets of the items in the text of the block. The first line of the block has lost its indentation. */
  #offsets(): ReadonlyArray<number> {
    if (this.#items.length === 0) return this.#items
    const first = this.#lines[0] ?? ""
    let at = first.trimStart().length - first.length
    const ends = this.#lines.map((line) => (at += line.length + 1))
    return this.#items.map((place) => (place === 0 ? 0 : (ends[place - 1] ?? 0)))
  }

  heading(heading: Heading, line: string): void {
    this.endSection()
    // A heading with an empty section is kept as text, unless the new heading is below it: then it is in the path.
    this.#path = [...this.#path.filter(({ level }) => level < heading.level), heading]
    this.#emptyHeadings.push({ heading, line: line.trim() })
  }

  endSection(): void {
    this.endBlock()
    if (this.#blocks.length > 0 || this.#emptyHeadings.length >= maxBlocks) this.#endPart()
    this.#hasPart = false
  }

  #endPart(): void {
    const droppedHeadings = this.#emptyHeadings.filter(({ heading }) => !this.#path.includes(heading))
    const carried = droppedHeadings.map(({ line }) => paragraph(line))
    this.sections.push({
      heading: this.#heading,
      blocks: [...carried, ...this.#blocks],
      continues: this.#hasPart
    })
    this.#blocks = []
    this.#emptyHeadings = []
    this.#hasPart = true
  }

  /** The last headings may have no content: they are added to the section before. */
  end(): void {
    this.endSection()
    const headings = this.#emptyHeadings.map(({ line }) => paragraph(line))
    const last = this.sections.pop()
    const blocks = [...(last?.blocks ?? []), ...headings]
    if (blocks.length === 0) return
    this.sections.push({ heading: last?.heading ?? "", blocks, continues: last?.continues ?? false })
  }

  get #heading(): string {
    const path = this.#path.map(({ text }) => text)
    // The document's title is stored beside the chunk and is not repeated in its path.
    return (path[0] === this.#title ? path.slice(1) : path).join(" > ")
  }
}

/** Number of lines between two points where the reader may pause. */
const linesPerPause = 256

function* linesOf(content: string): Generator<string> {
  const end = /\r\n|\r|\n/g
  let from = 0
  for (let found = end.exec(content); found !== null; found = end.exec(content)) {
    yield content.slice(from, found.index)
    from = end.lastIndex
  }
  yield content.slice(from)
}

class MarkdownReader {
  readonly #outline: Outline
  #fence: Fence | undefined
  /** Whether a `<pre>` is open. */
  #inHtmlCode = false
  /** Columns at which the texts of the open list items begin, the innermost last. */
  #offsets: Array<number> = []
  #afterBlank = true
  /** Number of blank lines in indented code. They belong to the code only if it continues after them. */
  #blankCode = 0
  #inCode = false

  constructor(outline: Outline) {
    this.#outline = outline
  }

  read(line: string): void {
    if (this.#fence !== undefined) this.#fenced(line, this.#fence)
    else if (this.#inHtmlCode) this.#htmlCode(line, false)
    else if (line.trim() === "") this.#blank()
    else {
      this.#text(line)
      this.#afterBlank = false
    }
  }

  #fenced(line: string, fence: Fence): void {
    this.#outline.line(line, "code")
    if (!closesFence(fence, line)) return
    this.#fence = undefined
    this.#outline.endBlock()
    this.#afterBlank = false
  }

  #htmlCode(line: string, continues: boolean): void {
    this.#outline.line(line, "code", continues)
    this.#inHtmlCode = !closesHtmlCode.test(line)
    if (this.#inHtmlCode) return
    this.#outline.endBlock()
    this.#afterBlank = false
  }

  #blank(): void {
    if (this.#inCode) this.#blankCode++
    else this.#outline.endBlock()
    this.#afterBlank = true
  }

  #text(line: string): void {
    const outline = this.#outline
    const level = underlineLevel(line)
    if (level !== undefined && outline.makeHeading(level)) return
    const indent = indentOf(line)
    const marker = parseListMarker(line)
    this.#leaveItems(indent, marker !== undefined)
    const continues = this.#offsets.length > 0
    const from = this.#offsets.at(-1) ?? 0
    this.#fence = opensFence(line)
    if (this.#fence === undefined && indent - from >= codeIndent && !outline.inParagraph) {
      return this.#code(line, continues)
    }
    this.#endCode()
    const heading = this.#fence === undefined ? parseHeading(line) : undefined
    if (heading !== undefined) {
      this.#offsets = []
      outline.heading(heading, line)
    } else if (this.#fence !== undefined) {
      outline.endBlock()
      outline.line(line, "code", continues)
    } else if (opensHtmlCode.test(line)) {
      outline.endBlock()
      this.#htmlCode(line, continues)
    } else if (opensContainer.test(line)) {
      outline.endBlock()
      outline.line(line, "prose", continues)
      this.#enterItem(indent + codeIndent)
    } else if (marker !== undefined && (continues || marker.mayInterrupt || !outline.inParagraph)) {
      if (continues) outline.line(line, "prose", true)
      else outline.item(line)
      this.#enterItem(marker.offset)
    } else outline.line(line, this.#isRow(line) ? "table" : "prose", continues)
  }

  #isRow(line: string): boolean {
    const outline = this.#outline
    if (line.trimStart().startsWith("|")) return true
    if (outline.inTable) return line.includes("|")
    return isDelimiterRow(line) && outline.makeTable()
  }

  #code(line: string, continues: boolean): void {
    if (!this.#inCode) this.#outline.endBlock()
    this.#inCode = true
    for (; this.#blankCode > 0; this.#blankCode--) this.#outline.line("", "code", continues)
    this.#outline.line(line, "code", continues)
  }

  #endCode(): void {
    if (this.#inCode) this.#outline.endBlock()
    this.#inCode = false
    this.#blankCode = 0
  }

  #enterItem(offset: number): void {
    while ((this.#offsets.at(-1) ?? 0) >= offset) this.#offsets.pop()
    this.#offsets.push(offset)
  }

  /** Closes the items that the line is indented less than, unless the line continues their last paragraph. */
  #leaveItems(indent: number, isMarker: boolean): void {
    if (!this.#afterBlank && !isMarker && this.#outline.inParagraph) return
    while (indent < (this.#offsets.at(-1) ?? 0)) this.#offsets.pop()
  }
}

const markdownReader = (outline: Outline) => {
  const reader = new MarkdownReader(outline)
  return (line: string) => reader.read(line)
}

const textReader = (outline: Outline) => (line: string) => {
  if (line.trim() === "") outline.endBlock()
  else outline.line(line, "prose")
}

const reader = { markdown: markdownReader, text: textReader } as const

/**
 * Yields the sections of a document. Headings outside code, marked with `#` or underlined, begin sections; blank lines
 * end paragraphs. Plain text is one section of paragraphs. Yields undefined when no section is ready yet, so that
 * other work can run during a long document.
 */
export function* sectionSteps(
  title: string,
  content: string,
  format: Format
): Generator<Section | undefined, void, void> {
  const outline = new Outline(title)
  const read = reader[format](outline)
  let lines = 0
  for (const line of linesOf(content)) {
    read(line)
    // The last section may still get headings at the end.
    while (outline.sections.length > 1) yield outline.sections.shift()
    if (++lines % linesPerPause === 0) yield undefined
  }
  outline.end()
  yield* outline.sections
}
