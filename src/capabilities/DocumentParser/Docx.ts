/**
 * DOCX: paragraphs, headings by style, lists and tables of the main text, as Markdown, in one pass over the XML. The text
 * of a note follows the paragraph that refers to it.
 */
import * as Effect from "effect/Effect"
import { ParseError, type ParsedDocument } from "../DocumentParser.ts"
import {
  type Container,
  mainPart,
  markdownTable,
  maxLabelLength,
  openContainer,
  relationships
} from "./Container.ts"
import { normalizeSpace } from "./PlainText.ts"
import { attribute, scan, type XmlVisitor } from "../../domain/Xml.ts"

const malformed = new ParseError({
  code: "malformed",
  message: "The Word document is damaged or incomplete. Save it again and upload the new file."
})
interface Paragraph {
  readonly paragraph: Array<string>
  readonly prefix: string
}
interface Writer {
  /** Heading marks by the id of the style. */
  readonly headings: ReadonlyMap<string, string>
  /** Texts of notes that no paragraph has referred to yet, by kind and id. */
  readonly notes: Map<string, string>
  readonly blocks: Array<string>
  paragraph: Array<string>
  prefix: string
  /** The paragraphs that contain the open text boxes. */
  readonly outer: Array<Paragraph>
  /** Cells of the rows of the outermost open table, each with its paragraphs. */
  rows: Array<Array<Array<string>>>
  openTables: number
  /** Columns of the open cell. */
  columns: number
  /** True if the open cell continues the one above it. */
  continuesCell: boolean
  addedCells: number
  /** Notes that the open paragraph refers to. */
  references: Array<string>
  inText: boolean
  inRun: boolean
  isHidden: boolean
  /** Number of open elements whose text is a duplicate. */
  openDuplicates: number
}

/** `style` is the name of a built-in style, which is English in every language, or an id without a name. */
const headingOf = (style: string): string => {
  const level = /^(?:heading|berschrift|titre|überschrift)\s?([1-6])/i.exec(style)?.[1]
  if (level !== undefined) return `${"#".repeat(Number(level))} `
  return /^title$/i.test(style) ? "# " : ""
}

/** Maximum number of styles of which one is based on the next. */
const maxBases = 10

/**
 * Heading marks by the id of the style. In Word in other languages the ids of headings are others, such as `Kop1`. Styles
 * that are based on a heading are headings.
 */
const headingStyles = (xml: string): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  const bases = new Map<string, string>()
  let id = ""
  scan(xml, {
    open: (name, tag) => {
      if (name === "style") id = attribute(tag, "*:styleId")
      else if (name === "name") names.set(id, attribute(tag, "*:val"))
      else if (name === "basedOn") bases.set(id, attribute(tag, "*:val"))
    },
    close: (name) => {
      if (name === "style") id = ""
    },
    text: () => undefined
  })
  const markOf = (style: string, depth: number): string => {
    const mark = headingOf(names.get(style) ?? style)
    const base = bases.get(style)
    return mark !== "" || base === undefined || depth === maxBases ? mark : markOf(base, depth + 1)
  }
  return new Map([...names.keys()].map((style) => [style, markOf(style, 0)]))
}

const endParagraph = (writer: Writer): void => {
  const text = writer.paragraph.join("").trim()
  const { prefix, references, rows, openTables } = writer
  writer.paragraph = []
  writer.prefix = ""
  writer.references = []
  if (openTables === 0) {
    if (text !== "") writer.blocks.push(prefix + text)
    writer.blocks.push(...references)
    return
  }
  const row = rows.at(-1)
  if (row?.length === 0) row.push([])
  for (const part of [text, ...references]) {
    if (part !== "") row?.at(-1)?.push(part.replace(/\s+/g, " ").replaceAll("|", "\\|"))
  }
}

/** Maximum columns of a cell, and maximum cells that are added to a document for merged ones. */
const maxColumns = 50
const maxAddedCells = 10_000

/** Repeats the text of a cell that is merged with the one above, and adds the other columns of a wide one. */
const endCell = (writer: Writer): void => {
  const { columns, continuesCell, rows, openTables } = writer
  writer.columns = 1
  writer.continuesCell = false
  const row = rows.at(-1)
  if (openTables !== 1 || row === undefined || row.length === 0) return
  const above = continuesCell ? (rows.at(-2)?.[row.length - 1] ?? []) : []
  const isLabel = above.reduce((sum, { length }) => sum + length, 0) <= maxLabelLength
  if (above.length > 0 && row.at(-1)?.length === 0 && isLabel && ++writer.addedCells <= maxAddedCells)
    row.at(-1)?.push(...above)
  for (let at = 1; at < Math.min(columns, maxColumns) && ++writer.addedCells <= maxAddedCells; at++)
    row.push([])
}

const endTable = (writer: Writer): void => {
  writer.openTables = Math.max(0, writer.openTables - 1)
  if (writer.openTables > 0) return
  const [head, ...rows] = writer.rows
    .filter((row) => row.some((cell) => cell.length > 0))
    .map((row) => row.map((cell) => cell.join(" ")))
  writer.rows = []
  if (head === undefined) return
  writer.blocks.push(markdownTable(head, rows))
}

const startBox = (writer: Writer): void => {
  writer.outer.push({ paragraph: writer.paragraph, prefix: writer.prefix })
  writer.paragraph = []
  writer.prefix = ""
}

const endBox = (writer: Writer): void => {
  endParagraph(writer)
  const { paragraph, prefix } = writer.outer.pop() ?? { paragraph: [], prefix: "" }
  writer.paragraph = paragraph
  writer.prefix = prefix
}

const valueOf = (tag: string): string => attribute(tag, "*:val")

/** A property is on, unless its value says otherwise. */
const isOn = (tag: string): boolean => !/^(?:0|false|off)$/.test(valueOf(tag))

const addReference = (kind: string) => (writer: Writer, tag: string) => {
  const key = `${kind} ${attribute(tag, "*:id")}`
  const note = writer.notes.get(key)
  // Each note once: a small file could refer to a long note any number of times.
  if (note === undefined || !writer.notes.delete(key)) return
  writer.references.push(note)
}

const starts: Readonly<Record<string, (writer: Writer, tag: string) => void>> = {
  r: (writer) => {
    writer.inRun = true
    writer.isHidden = false
  },
  // The mark of a paragraph may be hidden, too, outside of a run.
  vanish: (writer, tag) => (writer.isHidden ||= writer.inRun && isOn(tag)),
  t: (writer) => (writer.inText = true),
  tab: (writer) => writer.paragraph.push(" "),
  br: (writer) => writer.paragraph.push("\n"),
  cr: (writer) => writer.paragraph.push("\n"),
  noBreakHyphen: (writer) => writer.paragraph.push("-"),
  pStyle: (writer, tag) => {
    const style = valueOf(tag)
    writer.prefix = (writer.headings.get(style) ?? headingOf(style)) || writer.prefix
  },
  numPr: (writer) => (writer.prefix ||= "- "),
  // The number 0 takes the paragraph out of the list.
  numId: (writer, tag) => valueOf(tag) === "0" && writer.prefix === "- " && (writer.prefix = ""),
  txbxContent: startBox,
  tbl: (writer) => writer.openTables++,
  tr: (writer) => writer.openTables === 1 && writer.rows.push([]),
  tc: (writer) => writer.openTables === 1 && writer.rows.at(-1)?.push([]),
  gridSpan: (writer, tag) => writer.openTables === 1 && (writer.columns = Number(valueOf(tag))),
  vMerge: (writer, tag) => writer.openTables === 1 && (writer.continuesCell = valueOf(tag) !== "restart"),
  footnoteReference: addReference("footnote"),
  endnoteReference: addReference("endnote"),
  // Parts of an equation that stand above each other.
  num: (writer) => writer.paragraph.push("("),
  den: (writer) => writer.paragraph.push("/("),
  sup: (writer) => writer.paragraph.push("^"),
  sub: (writer) => writer.paragraph.push("_")
}
const ends: Readonly<Record<string, (writer: Writer) => void>> = {
  r: (writer) => {
    writer.inRun = false
    writer.isHidden = false
  },
  t: (writer) => (writer.inText = false),
  p: endParagraph,
  txbxContent: endBox,
  tc: endCell,
  tbl: endTable,
  num: (writer) => writer.paragraph.push(")"),
  den: (writer) => writer.paragraph.push(")")
}

/** An alternative rendering of text, text at the place that it was moved from, and the pronunciation of a word. */
const duplicateElements = new Set(["Fallback", "moveFrom", "rt"])

/** Writes what an element of the text holds. */
const visitorOf = (writer: Writer): XmlVisitor => ({
  open: (name, tag) => {
    if (duplicateElements.has(name)) writer.openDuplicates++
    else if (writer.openDuplicates === 0) starts[name]?.(writer, tag)
  },
  close: (name) => {
    if (duplicateElements.has(name)) writer.openDuplicates = Math.max(0, writer.openDuplicates - 1)
    else if (writer.openDuplicates === 0) ends[name]?.(writer)
  },
  text: (text) => {
    if (writer.inText && !writer.isHidden && writer.openDuplicates === 0) writer.paragraph.push(text)
  }
})

const makeWriter = (headings: ReadonlyMap<string, string>, notes: Map<string, string>): Writer => ({
  headings,
  notes,
  blocks: [],
  paragraph: [],
  prefix: "",
  outer: [],
  rows: [],
  openTables: 0,
  columns: 1,
  continuesCell: false,
  addedCells: 0,
  references: [],
  inText: false,
  inRun: false,
  isHidden: false,
  openDuplicates: 0
})

/** Ends what the XML leaves open, and takes the text. */
const textOf = (writer: Writer): string => {
  while (writer.outer.length > 0) endBox(writer)
  endParagraph(writer)
  writer.openTables = Math.min(writer.openTables, 1)
  endTable(writer)
  return normalizeSpace(writer.blocks.splice(0).join("\n\n"))
}

/** Adds the texts of the notes in `xml` to `notes`. */
const readNotes = (xml: string, kind: string, notes: Map<string, string>): void => {
  const writer = makeWriter(new Map(), new Map())
  const visitor = visitorOf(writer)
  let id = ""
  scan(xml, {
    ...visitor,
    open: (name, tag) => {
      if (name === kind) id = attribute(tag, "*:id")
      else visitor.open(name, tag)
    },
    close: (name) => {
      if (name !== kind) return visitor.close(name)
      const text = textOf(writer)
      if (text !== "") notes.set(`${kind} ${id}`, text)
    }
  })
}

const toMarkdown = (
  xml: string,
  headings: ReadonlyMap<string, string>,
  notes: Map<string, string>
): string => {
  const writer = makeWriter(headings, notes)
  scan(xml, visitorOf(writer))
  return textOf(writer)
}

const firstHeading = (content: string): string => /^# (.{1,300})$/m.exec(content)?.[1]?.trim() ?? ""

const isNeeded = (name: string): boolean =>
  name === "_rels/.rels" ||
  /^word\/(?:_rels\/document[^/]*\.rels|(?:document|styles|footnotes|endnotes)[^/]*\.xml)$/i.test(name)

/** The text of the part that `main` refers to by its type, which is also the part's usual name. */
const partsOf = (container: Container, main: string) => {
  const parts = relationships(container, main)
  return (type: string) =>
    container.text(parts.find((part) => part.type === type)?.target ?? `word/${type}.xml`)
}

/** `title` is the first top heading, or empty. */
export const parseDocx = (
  bytes: Uint8Array
): Effect.Effect<Pick<ParsedDocument, "title" | "format" | "content">, ParseError> =>
  Effect.gen(function* () {
    const container = yield* openContainer(bytes, isNeeded)
    const part = mainPart(container, "word/document.xml")
    const main = container.text(part)
    if (main === "") return yield* malformed
    const partOf = partsOf(container, part)
    const notes = new Map<string, string>()
    for (const kind of ["footnote", "endnote"]) readNotes(partOf(`${kind}s`), kind, notes)
    const content = toMarkdown(main, headingStyles(partOf("styles")), notes)
    return { title: firstHeading(content), format: "markdown" as const, content }
  })
