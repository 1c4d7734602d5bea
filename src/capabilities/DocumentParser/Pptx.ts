/** PPTX: every visible slide in order, with its title as a heading, its text, tables and the speaker's notes. */
import * as Effect from "effect/Effect"
import { ParseError, type ParsedDocument, type ParseLimits } from "../DocumentParser.ts"
import {
  type Container,
  mainPart,
  markdownTable,
  maxLabelLength,
  openContainer,
  relationships
} from "./Container.ts"
import { attribute, scan } from "../../domain/Xml.ts"
import { oneLine } from "./PlainText.ts"

const malformed = new ParseError({
  code: "malformed",
  message: "The presentation is damaged or incomplete. Save it again and upload the new file."
})
const tooManySlides = (slides: number, max: number) =>
  new ParseError({
    code: "too_many_pages",
    message: `The presentation has ${slides} slides, and at most ${max} are read. Split it into several files.`
  })

interface Shape {
  /** `title`, `body` and others; empty for a shape that is not a placeholder. */
  readonly role: string
  readonly paragraphs: ReadonlyArray<string>
  /** Rows of its tables. */
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

interface Slide {
  readonly hidden: boolean
  readonly shapes: ReadonlyArray<Shape>
}

/** Maximum cells of a slide that repeat the text of the merged cell above. */
const maxRepeatedCells = 100

/** Collects shapes. Of alternative renderings (`AlternateContent`) the first is used. */
class SlideReader {
  readonly shapes: Array<Shape> = []
  hidden = false
  #role = ""
  #paragraphs: Array<string> = []
  /** Cells, each with its paragraphs. */
  #rows: Array<Array<Array<string>>> = []
  #parts: Array<string> = []
  #inText = false
  #inCell = false
  #fallbacks = 0
  #repeatedCells = 0

  open(name: string, tag: string): void {
    if (name === "Fallback") this.#fallbacks++
    if (this.#fallbacks > 0) return
    if (name === "sld") this.hidden = /^(?:0|false)$/.test(attribute(tag, "show"))
    else if (name === "ph") this.#role = attribute(tag, "type") || "body"
    else if (name === "t") this.#inText = true
    else if (name === "br" || name === "tab") this.#parts.push(" ")
    else if (name === "tr") this.#rows.push([])
    else if (name === "tc") {
      this.#rows.at(-1)?.push(/^(?:1|true)$/.test(attribute(tag, "vMerge")) ? this.#textAbove() : [])
      this.#inCell = true
    }
  }

  close(name: string): void {
    if (name === "Fallback") this.#fallbacks = Math.max(0, this.#fallbacks - 1)
    else if (name === "t") this.#inText = false
    else if (name === "tc") this.#inCell = false
    else if (name === "p") this.#endParagraph()
    else if (name === "sp" || name === "graphicFrame") this.#endShape()
  }

  text(text: string): void {
    if (this.#inText && this.#fallbacks === 0) this.#parts.push(text)
  }

  /** The paragraphs of the cell above the next one, if they are short. */
  #textAbove(): Array<string> {
    const above = this.#rows.at(-2)?.[this.#rows.at(-1)?.length ?? 0] ?? []
    const isLabel = above.reduce((sum, { length }) => sum + length, 0) <= maxLabelLength
    return isLabel && ++this.#repeatedCells <= maxRepeatedCells ? [...above] : []
  }

  #endParagraph(): void {
    const text = oneLine(this.#parts.join(""))
    this.#parts = []
    if (text === "") return
    const row = this.#rows.at(-1)
    if (this.#inCell && row !== undefined) row.at(-1)?.push(text.replaceAll("|", "\\|"))
    else this.#paragraphs.push(text)
  }

  #endShape(): void {
    const rows = this.#rows.map((row) => row.map((cell) => cell.join(" ")))
    this.shapes.push({ role: this.#role, paragraphs: this.#paragraphs, rows })
    this.#role = ""
    this.#paragraphs = []
    this.#rows = []
  }
}

const readSlide = (xml: string): Slide => {
  const reader = new SlideReader()
  scan(xml, {
    open: (name, tag) => reader.open(name, tag),
    close: (name) => reader.close(name),
    text: (text) => reader.text(text)
  })
  return reader
}

const isTitle = ({ role }: Shape): boolean => role === "title" || role === "ctrTitle"
/** Page numbers, dates and footers are repeated on each slide and are ignored. */
const isRepeated = ({ role }: Shape): boolean => ["sldNum", "dt", "ftr", "hdr"].includes(role)

const shapeBlocks = ({ paragraphs, rows }: Shape): ReadonlyArray<string> => {
  const list = paragraphs.length > 1 ? paragraphs.map((text) => `- ${text}`) : paragraphs
  const [head, ...body] = rows.filter((row) => row.some((cell) => cell !== ""))
  const table = head === undefined ? [] : [markdownTable(head, body)]
  return [...(list.length > 0 ? [list.join("\n")] : []), ...table]
}

/** Notes belong to one slide: those in `readParts` are not read again. */
const notesOf = (container: Container, slide: string, readParts: Set<string>): string => {
  const part = relationships(container, slide).find(({ type }) => type === "notesSlide")?.target
  if (part === undefined || readParts.has(part)) return ""
  readParts.add(part)
  const body = readSlide(container.text(part)).shapes.filter(({ role }) => role === "body")
  return body.flatMap(({ paragraphs }) => paragraphs).join("\n")
}

const titleOf = ({ shapes }: Slide): string =>
  oneLine(
    shapes
      .filter(isTitle)
      .flatMap(({ paragraphs }) => paragraphs)
      .join(" ")
  )

const slideBlocks = (slide: Slide, notes: string, number: number): ReadonlyArray<string> => {
  const body = slide.shapes.filter((shape) => !isTitle(shape) && !isRepeated(shape)).flatMap(shapeBlocks)
  const noteBlocks = notes === "" ? [] : [`Notes: ${notes}`]
  const title = titleOf(slide)
  if (title === "" && body.length + noteBlocks.length === 0) return []
  return [`## ${title || `Slide ${number}`}`, ...body, ...noteBlocks]
}

/** Each slide once: a small file could reference a large slide any number of times. */
const slidesOf = (container: Container): ReadonlySet<string> => {
  const main = mainPart(container, "ppt/presentation.xml")
  const parts = new Map(relationships(container, main).map(({ id, target }) => [id, target]))
  const slides = new Set<string>()
  scan(container.text(main), {
    open: (name, tag) => {
      const part = name === "sldId" ? parts.get(attribute(tag, "*:id")) : undefined
      if (part !== undefined) slides.add(part)
    },
    close: () => undefined,
    text: () => undefined
  })
  return slides
}

const isNeeded = (name: string): boolean =>
  /\.rels$|^ppt\/(?:presentation|slides\/|notesSlides\/).*\.xml$/i.test(name)

/** `title` is that of the first slide that has one. */
export const parsePptx = (
  bytes: Uint8Array,
  { maxPages }: ParseLimits
): Effect.Effect<Pick<ParsedDocument, "title" | "format" | "content">, ParseError> =>
  Effect.gen(function* () {
    const container = yield* openContainer(bytes, isNeeded)
    const parts = yield* Effect.try({ try: () => slidesOf(container), catch: () => malformed })
    if (parts.size > maxPages) return yield* tooManySlides(parts.size, maxPages)
    const blocks: Array<string> = []
    const readParts = new Set<string>()
    let title = ""
    let number = 0
    for (const part of parts) {
      number++
      const slide = yield* Effect.try({ try: () => readSlide(container.text(part)), catch: () => malformed })
      if (slide.hidden) continue
      title ||= titleOf(slide)
      blocks.push(...slideBlocks(slide, notesOf(container, part, readParts), number))
    }
    return { title, format: "markdown" as const, content: blocks.join("\n\n") }
  })
