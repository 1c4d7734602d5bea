/**
 * XLSX: every visible sheet as a heading and Markdown tables. The header row is repeated in each table, so that a chunk
 * explains its values. Only existing cells are stored; declared sizes are ignored.
 */
import * as Effect from "effect/Effect"
import { ParseError, type ParsedDocument, type ParseLimits } from "../DocumentParser.ts"
import { type Container, mainPart, maxLabelLength, openContainer, relationships } from "./Container.ts"
import { cellFormats, type CellFormat, displayedValue, unescapedText } from "./XlsxValues.ts"
import { attribute, scan } from "../../domain/Xml.ts"
import { oneLine } from "./PlainText.ts"

const maxCells = 1_000_000
/** Maximum length of one table. It fits a chunk, which keeps tables whole up to 1,600. */
const maxTableCharacters = 1_200
/** A longer header would fill each chunk. Such rows are written as `header: value`. */
const maxHeaderCharacters = 400

const tooLarge = new ParseError({
  code: "too_large",
  message: `The workbook has more cells than one document may: at most ${maxCells.toLocaleString("en")} are read. Split it into several files.`
})
/** Tables repeat the header, so short cells may become long text. */
const tooLong = new ParseError({
  code: "too_large",
  message: "The workbook has too much text for one document. Split it into several files."
})

/** Called with the length of text that is about to be written. Throws when the limit is exceeded. */
type CountOutput = (length: number) => void

interface Cell {
  /** 0-based. */
  readonly column: number
  readonly text: string
}
/** The cells with text. Plain arrays, because a million rows as maps would not fit the memory limit. */
type Row = ReadonlyArray<Cell>

/** Cell texts by column. */
const byColumn = (row: Row): ReadonlyMap<number, string> =>
  new Map(row.map(({ column, text }) => [column, text]))

/** `BC12` is column 54. A cell without a reference follows the one before. */
const columnOf = (reference: string, before: number): number => {
  const letters = /^[A-Z]{1,3}/.exec(reference)?.[0]
  if (letters === undefined) return before + 1
  let column = 0
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64
  return column - 1
}

const lettersOf = (column: number): string =>
  (column >= 26 ? lettersOf(Math.floor(column / 26) - 1) : "") + String.fromCharCode(65 + (column % 26))

/** Texts of `<si>` elements, without phonetic readings of East Asian text. */
const sharedStrings = (xml: string): ReadonlyArray<string> => {
  const strings: Array<string> = []
  let parts: Array<string> = []
  let inText = false
  let phonetic = false
  scan(xml, {
    open: (name) => {
      if (name === "si") parts = []
      else if (name === "t") inText = true
      else if (name === "rPh") phonetic = true
    },
    close: (name) => {
      // Normalized once and not for each cell, because any number of cells may refer to it.
      if (name === "si") {
        strings.push(oneLine(unescapedText(parts.join(""))))
        parts = []
      } else if (name === "t") inText = false
      else if (name === "rPh") phonetic = false
    },
    text: (text) => {
      if (inText && !phonetic) parts.push(text)
    }
  })
  return strings
}

interface Book {
  readonly strings: ReadonlyArray<string>
  readonly formats: ReadonlyArray<CellFormat>
  readonly from1904: boolean
}

/** The first column of merged cells, and their rows. */
interface Merged {
  readonly column: number
  readonly firstRow: number
  readonly lastRow: number
}

const mergedOf = (reference: string): Merged | undefined => {
  const [, letters = "", first, last] = /^([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})$/.exec(reference) ?? []
  const merged = { column: columnOf(letters, -1), firstRow: Number(first), lastRow: Number(last) }
  return merged.lastRow > merged.firstRow ? merged : undefined
}

/** Maximum cells of a sheet that repeat the text of merged ones. */
const maxRepeatedCells = 10_000

/** Repeats the text of merged cells in each of their rows. `numbers` are those of the rows. */
const withLabels = (
  rows: ReadonlyArray<Row>,
  numbers: ReadonlyArray<number>,
  merged: ReadonlyArray<Merged>
): ReadonlyArray<Row> => {
  if (merged.length === 0) return rows
  const starting = new Map<number, Array<Merged>>()
  for (const cells of merged) {
    const others = starting.get(cells.firstRow)
    if (others === undefined) starting.set(cells.firstRow, [cells])
    else others.push(cells)
  }
  const labels = new Map<number, { readonly cell: Cell; readonly lastRow: number }>()
  let repeated = 0
  return rows.map((row, index) => {
    const number = numbers[index] ?? 0
    const starts = starting.get(number) ?? []
    starting.delete(number)
    if (labels.size + starts.length === 0) return row
    const columns = byColumn(row)
    const added: Array<Cell> = []
    for (const [column, { cell, lastRow }] of labels) {
      if (number > lastRow || repeated === maxRepeatedCells) labels.delete(column)
      else if (!columns.has(column)) {
        added.push(cell)
        repeated++
      }
    }
    for (const { column, lastRow } of starts) {
      const text = columns.get(column)
      if (text !== undefined && text.length <= maxLabelLength)
        labels.set(column, { cell: { column, text }, lastRow })
    }
    return added.length === 0 ? row : [...row, ...added].sort((a, b) => a.column - b.column)
  })
}

/** The rows that have a cell with text. `countCell` is called for each cell and throws when there are too many. */
const rowsOf = (
  xml: string,
  { strings, formats, from1904 }: Book,
  countCell: (text: string) => void
): ReadonlyArray<Row> => {
  const found: Array<Row> = []
  const numbers: Array<number> = []
  const merged: Array<Merged> = []
  let number = 0
  let row: Array<Cell> = []
  let column = -1
  let cell: { readonly type: string; readonly format: CellFormat } = { type: "", format: "plain" }
  let parts: Array<string> = []
  let inValue = false
  const value = (): string => {
    const text = parts.join("")
    if (cell.type === "s") return strings[Number(text)] ?? ""
    if (cell.type === "b") return text === "1" ? "TRUE" : "FALSE"
    const isNumber = cell.type === "" || cell.type === "n"
    return oneLine(isNumber ? displayedValue(text, cell.format, from1904) : unescapedText(text))
  }
  scan(xml, {
    open: (name, tag) => {
      if (name === "row") {
        row = []
        column = -1
        number = Number(attribute(tag, "r")) || number + 1
      } else if (name === "c") {
        column = columnOf(attribute(tag, "r"), column)
        cell = { type: attribute(tag, "t"), format: formats[Number(attribute(tag, "s"))] ?? "plain" }
        parts = []
      } else if (name === "v" || name === "t") inValue = true
      else if (name === "mergeCell" && merged.length < maxRepeatedCells) {
        const cells = mergedOf(attribute(tag, "ref"))
        if (cells !== undefined) merged.push(cells)
      }
    },
    close: (name) => {
      if (name === "v" || name === "t") inValue = false
      else if (name === "c") {
        const text = parts.length === 0 ? "" : value()
        // Malformed XML may contain more closing tags than cells.
        parts = []
        if (text !== "") {
          countCell(text)
          row.push({ column, text })
        }
      } else if (name === "row" && row.length > 0) {
        // A copy drops the spare capacity of a growing array.
        found.push(row.slice())
        numbers.push(number)
        row = []
      }
    },
    text: (text) => {
      if (inValue) parts.push(text)
    }
  })
  return withLabels(found, numbers, merged)
}

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
const escapePipes = (text: string): string => text.replaceAll("|", "\\|")

/** Tables of at most {@link maxTableCharacters} characters, each with the header. */
const asTables = (
  header: Row,
  columns: ReadonlyArray<number>,
  body: ReadonlyArray<Row>,
  countOutput: CountOutput
): ReadonlyArray<string> => {
  const cells = (row: Row) => {
    const texts = byColumn(row)
    const text = line(columns.map((column) => escapePipes(texts.get(column) ?? "")))
    countOutput(text.length)
    return text
  }
  const headerLines = `${cells(header)}\n${line(columns.map(() => "---"))}`
  const tables: Array<string> = []
  let table = headerLines
  for (const row of body) {
    const next = cells(row)
    if (table !== headerLines && table.length + 1 + next.length > maxTableCharacters) {
      tables.push(table)
      table = headerLines
      countOutput(headerLines.length)
    }
    table += `\n${next}`
  }
  return [...tables, table]
}

/** A row as lines `header: value`, for sheets so wide that the header would outweigh the values. */
const asRecords = (
  header: Row,
  body: ReadonlyArray<Row>,
  countOutput: CountOutput
): ReadonlyArray<string> => {
  const names = byColumn(header)
  return body.map((row) =>
    row
      .map(({ column, text }) => {
        const name = names.get(column) ?? lettersOf(column)
        countOutput(name.length + text.length)
        return `${name}: ${text}`
      })
      .join("\n")
  )
}

const sheetBlocks = (all: ReadonlyArray<Row>, countOutput: CountOutput): ReadonlyArray<string> => {
  const [header, ...body] = all
  if (header === undefined) return []
  const used = new Set<number>()
  for (const row of all) for (const { column } of row) used.add(column)
  const columns = [...used].sort((a, b) => a - b)
  const length = header.reduce((sum, { text }) => sum + text.length, 3 * columns.length)
  if (length <= maxHeaderCharacters) return asTables(header, columns, body, countOutput)
  return body.length === 0
    ? [header.map(({ text }) => text).join("\n")]
    : asRecords(header, body, countOutput)
}

interface Sheet {
  readonly name: string
  readonly id: string
}

const sheetsOf = (
  workbook: string
): { readonly sheets: ReadonlyArray<Sheet>; readonly from1904: boolean } => {
  const sheets: Array<Sheet> = []
  let from1904 = false
  scan(workbook, {
    open: (name, tag) => {
      if (name === "workbookPr") from1904 = /^(?:1|true)$/.test(attribute(tag, "date1904"))
      const hidden = attribute(tag, "state").toLowerCase().includes("hidden")
      if (name === "sheet" && !hidden) {
        sheets.push({ name: attribute(tag, "name"), id: attribute(tag, "*:id") })
      }
    },
    close: () => undefined,
    text: () => undefined
  })
  return { sheets, from1904 }
}

const readBook = (container: Container, { maxCharacters }: ParseLimits): string => {
  const main = mainPart(container, "xl/workbook.xml")
  const parts = relationships(container, main)
  const targets = new Map(parts.toReversed().map(({ id, target }) => [id, target]))
  const partOf = (type: string) => container.text(parts.find((part) => part.type === type)?.target ?? "")
  const { sheets, from1904 } = sheetsOf(container.text(main))
  const book: Book = {
    strings: sharedStrings(partOf("sharedStrings")),
    formats: cellFormats(partOf("styles")),
    from1904
  }
  const blocks: Array<string> = []
  let cells = 0
  let length = 0
  const countCell = (text: string) => {
    length += text.length
    if (++cells > maxCells || length > maxCharacters) throw tooLarge
  }
  let written = 0
  const countOutput: CountOutput = (characters) => {
    written += characters
    if (written > maxCharacters) throw tooLong
  }
  const read = new Set<string>()
  for (const { name, id } of sheets) {
    const part = targets.get(id)
    // A part is read once: a small file could reference a large sheet any number of times.
    if (part === undefined || read.has(part)) continue
    read.add(part)
    const content = sheetBlocks(rowsOf(container.text(part), book, countCell), countOutput)
    if (content.length > 0) blocks.push(`## ${oneLine(name) || "Sheet"}`)
    // One by one: a call with hundreds of thousands of arguments overflows the stack.
    for (const block of content) blocks.push(block)
  }
  return blocks.join("\n\n")
}

const isNeeded = (name: string): boolean => /\.(?:xml|rels)$/i.test(name)

export const parseXlsx = (
  bytes: Uint8Array,
  limits: ParseLimits
): Effect.Effect<Pick<ParsedDocument, "format" | "content">, ParseError> =>
  Effect.flatMap(openContainer(bytes, isNeeded), (container) =>
    Effect.try({
      try: () => ({ format: "markdown" as const, content: readBook(container, limits) }),
      catch: (error) =>
        error instanceof ParseError
          ? error
          : new ParseError({
              code: "malformed",
              message: "The workbook is damaged or incomplete. Save it again and upload the new file."
            })
    })
  )
