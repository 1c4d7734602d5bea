/** Plain text, CSV and JSON, formatted so that pieces of it can be understood alone. */
import type { ParsedDocument } from "../DocumentParser.ts"

type ParsedText = Pick<ParsedDocument, "format" | "content">

/** The words of a text on one line. */
export const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim()

/** Normalizes white space: Unix line ends, none at line ends, at most one empty line in a row. */
export const normalizeSpace = (text: string): string => {
  const lines: Array<string> = []
  for (const line of text.replaceAll("\r\n", "\n").replaceAll("\r", "\n").split("\n")) {
    const trimmed = line.trimEnd()
    if (trimmed !== "" || (lines.length > 0 && lines.at(-1) !== "")) lines.push(trimmed)
  }
  while (lines.at(-1) === "") lines.pop()
  return lines.join("\n")
}

export const parseText = (text: string): ParsedText => ({ format: "text", content: normalizeSpace(text) })

/** The value and the end of the quoted field that begins at `start`. A quote without an end takes the rest. */
const quotedValue = (text: string, start: number): { readonly value: string; readonly end: number } => {
  const parts: Array<string> = []
  let from = start + 1
  for (;;) {
    const close = text.indexOf('"', from)
    if (close === -1) return { value: parts.join("") + text.slice(from), end: text.length }
    parts.push(text.slice(from, close))
    if (text.charAt(close + 1) !== '"') return { value: parts.join(""), end: close + 1 }
    parts.push('"')
    from = close + 2
  }
}

/** The most frequent delimiter of the header, outside of quotes. A quoted name may contain line breaks. */
const delimiterOf = (text: string): string => {
  const counts = new Map([",", ";", "\t", "|"].map((mark) => [mark, 0]))
  let isFieldStart = true
  for (let at = 0; at < text.length && text[at] !== "\n";) {
    const character = text[at] ?? ""
    if (character === '"' && isFieldStart) {
      at = quotedValue(text, at).end
      isFieldStart = false
      continue
    }
    const count = counts.get(character)
    if (count !== undefined) counts.set(character, count + 1)
    isFieldStart = count !== undefined || (isFieldStart && character === " ")
    at++
  }
  return [...counts].reduce((best, next) => (next[1] > best[1] ? next : best))[0]
}

/** The records of RFC 4180 text, parsed leniently in one pass. */
const csvRows = (text: string, delimiter: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = []
  let row: Array<string> = []
  let field: Array<string> = []
  let from = 0
  const flush = (end: number) => {
    row.push((field.join("") + text.slice(from, end)).trim())
    field = []
    from = end + 1
  }
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === '"' && at === from && field.length === 0) {
      const { value, end } = quotedValue(text, at)
      field.push(value)
      from = end
      at = end - 1
    } else if (character === delimiter) flush(at)
    else if (character === "\n") {
      flush(at)
      rows.push(row)
      row = []
    }
  }
  flush(text.length)
  rows.push(row)
  return rows.filter((fields) => fields.some((value) => value !== ""))
}

/** Maximum length of a column name or path. Longer ones are cut, because they are repeated for each value. */
const maxNameCharacters = 200

/** Line ends as Unix has them. Some programs write a carriage return alone. */
const withUnixLineEnds = (text: string): string => {
  const lines = text.replaceAll("\r\n", "\n")
  return lines.includes("\n") ? lines : lines.replaceAll("\r", "\n")
}

/**
 * Each record becomes a paragraph of `column: value` lines, so that every chunk explains its values. `isTabbed`: the
 * file is declared to have tabs between values.
 */
export const parseCsv = (text: string, isTabbed: boolean): ParsedText => {
  const lines = withUnixLineEnds(text)
  // Excel writes the delimiter in a line before the header.
  const [delimiterLine, declared] = /^"?sep=([^"\n])"?\n/i.exec(lines) ?? ["", undefined]
  const table = lines.slice(delimiterLine.length)
  const [header, ...records] = csvRows(table, declared ?? (isTabbed ? "\t" : delimiterOf(table)))
  if (header === undefined || records.length === 0) return parseText(text)
  const names = header.map((name) => name.slice(0, maxNameCharacters))
  const paragraphs = records.map((record) =>
    record
      .map((value, index) => ({ value, name: names[index] ?? "" }))
      .filter(({ value }) => value !== "")
      .map(({ name, value }) => (name === "" ? value : `${name}: ${value}`))
      .join("\n")
  )
  return { format: "text", content: normalizeSpace(paragraphs.join("\n\n")) }
}

const maxDepth = 64

/** Adds a line for each value in `value` to `into`. */
const addValues = (value: unknown, fullPath: string, depth: number, into: Array<string>): void => {
  const path = fullPath.slice(0, maxNameCharacters)
  if (typeof value !== "object" || value === null) {
    into.push(path === "" ? String(value) : `${path}: ${String(value)}`)
  } else if (depth === 0) {
    into.push(`${path}: (nested deeper than ${maxDepth} levels)`)
  } else if (Array.isArray(value)) {
    value.forEach((member: unknown, index) => addValues(member, `${path}[${index}]`, depth - 1, into))
  } else {
    for (const [name, member] of Object.entries(value)) {
      addValues(member, path === "" ? name : `${path}.${name}`, depth - 1, into)
    }
  }
}

/** Every value is a line with its path. Members of the outermost array or object become paragraphs. */
export const parseJson = (value: unknown): ParsedText => {
  const members: ReadonlyArray<readonly [string, unknown]> =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.entries(value)
      : (Array.isArray(value) ? value : [value]).map((member: unknown) => ["", member] as const)
  const paragraphs = members.map(([name, member]) => {
    const lines: Array<string> = []
    addValues(member, name, maxDepth, lines)
    return lines.join("\n")
  })
  return { format: "text", content: normalizeSpace(paragraphs.join("\n\n")) }
}
