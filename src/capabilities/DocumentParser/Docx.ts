/** DOCX: paragraphs, headings by style, lists and tables of the main text, as Markdown, in one pass over the XML. */
import * as Effect from "effect/Effect"
import { ParseError, type ParsedDocument } from "../DocumentParser.ts"
import { mainPart, openContainer, markdownTable, relationships } from "./Container.ts"
import { normalizeSpace } from "./PlainText.ts"
import { attribute, scan, unescape } from "../../domain/Xml.ts"

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
  readonly blocks: Array<string>
  paragraph: Array<string>
  prefix: string
  /** The paragraphs that contain the open text boxes. */
  readonly outer: Array<Paragraph>
  /** Cells of the rows of the outermost open table, each with its paragraphs. */
  rows: Array<Array<Array<string>>>
  openTables: number
  inText: boolean
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
      if (name === "style") id = attribute(tag, "w:styleId")
      else if (name === "name") names.set(id, attribute(tag, "w:val"))
      else if (name === "basedOn") bases.set(id, attribute(tag, "w:val"))
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
  const { prefix, rows, openTables } = writer
  writer.paragraph = []
  writer.prefix = ""
  if (text === "") return
  if (openTables === 0) {
    writer.blocks.push(prefix + text)
    return
  }
  const row = rows.at(-1)
  if (row?.length === 0) row.push([])
  row?.at(-1)?.push(text.replace(/\s+/g, " ").replaceAll("|", "\\|"))
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

const valueOf = (tag: string): string => unescape(/\bw:val="([^"]{0,200})"/.exec(tag)?.[1] ?? "")

const starts: Readonly<Record<string, (writer: Writer, tag: string) => void>> = {
  "w:t": (writer, tag) => (writer.inText = !tag.endsWith("/")),
  "w:tab": (writer) => writer.paragraph.push(" "),
  "w:br": (writer) => writer.paragraph.push("\n"),
  "w:cr": (writer) => writer.paragraph.push("\n"),
  "w:noBreakHyphen": (writer) => writer.paragraph.push("-"),
  "w:pStyle": (writer, tag) => {
    const style = valueOf(tag)
    writer.prefix = (writer.headings.get(style) ?? headingOf(style)) || writer.prefix
  },
  "w:numPr": (writer) => (writer.prefix ||= "- "),
  // The number 0 takes the paragraph out of the list.
  "w:numId": (writer, tag) => valueOf(tag) === "0" && writer.prefix === "- " && (writer.prefix = ""),
  "w:txbxContent": startBox,
  "w:tbl": (writer) => writer.openTables++,
  "w:tr": (writer) => writer.openTables === 1 && writer.rows.push([]),
  "w:tc": (writer) => writer.openTables === 1 && writer.rows.at(-1)?.push([])
}
const ends: Readonly<Record<string, (writer: Writer) => void>> = {
  "w:t": (writer) => (writer.inText = false),
  "w:p": endParagraph,
  "w:txbxContent": endBox,
  "w:tbl": endTable
}

/** An alternative rendering of text, and text at the place that it was moved from. */
const duplicateElements = new Set(["mc:Fallback", "w:moveFrom"])

const readTag = (writer: Writer, tag: string): void => {
  const name = /^\/?([A-Za-z:]{1,40})/.exec(tag)?.[1] ?? ""
  if (duplicateElements.has(name)) {
    if (tag.startsWith("/")) writer.openDuplicates = Math.max(0, writer.openDuplicates - 1)
    else if (!tag.endsWith("/")) writer.openDuplicates++
  } else if (writer.openDuplicates > 0) return
  else if (tag.startsWith("/")) ends[name]?.(writer)
  else starts[name]?.(writer, tag)
}

const toMarkdown = (xml: string, headings: ReadonlyMap<string, string>): string => {
  const writer: Writer = {
    headings,
    blocks: [],
    paragraph: [],
    prefix: "",
    outer: [],
    rows: [],
    openTables: 0,
    inText: false,
    openDuplicates: 0
  }
  for (let at = 0; at < xml.length;) {
    const open = xml.indexOf("<", at)
    if (open === -1) break
    if (writer.inText) writer.paragraph.push(unescape(xml.slice(at, open)))
    const close = xml.indexOf(">", open)
    if (close === -1) break
    readTag(writer, xml.slice(open + 1, close))
    at = close + 1
  }
  while (writer.outer.length > 0) endBox(writer)
  endParagraph(writer)
  writer.openTables = Math.min(writer.openTables, 1)
  endTable(writer)
  return normalizeSpace(writer.blocks.join("\n\n"))
}

const firstHeading = (content: string): string => /^# (.{1,300})$/m.exec(content)?.[1]?.trim() ?? ""

const isNeeded = (name: string): boolean =>
  name === "_rels/.rels" || /^word\/(?:_rels\/document[^/]*\.rels|(?:document|styles)[^/]*\.xml)$/i.test(name)

/** `title` is the first top heading, or empty. */
export const parseDocx = (
  bytes: Uint8Array
): Effect.Effect<Pick<ParsedDocument, "title" | "format" | "content">, ParseError> =>
  Effect.gen(function* () {
    const container = yield* openContainer(bytes, isNeeded)
    const part = mainPart(container, "word/document.xml")
    const main = container.text(part)
    if (main === "") return yield* malformed
    const styles = relationships(container, part).find(({ type }) => type === "styles")?.target
    const content = toMarkdown(main, headingStyles(container.text(styles ?? "word/styles.xml")))
    return { title: firstHeading(content), format: "markdown" as const, content }
  })
