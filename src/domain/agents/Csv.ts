/**
 * Comma-separated values (RFC 4180): quoted fields may contain commas, doubled quotes and line breaks. Spreadsheets write
 * semicolons where the decimal sign is a comma, or tabs.
 */

export interface CsvRecord {
  /** Number of its first line, from 1. */
  readonly line: number
  readonly fields: ReadonlyArray<string>
}

/** A quoted field without an end; `line` is where it begins. */
export interface OpenQuote {
  readonly line: number
  readonly fields: null
}

const quotedField = /"([^"]*(?:""[^"]*)*)("?)/y
const plainFields = { ",": /[^,\r\n]*/y, ";": /[^;\r\n]*/y, "\t": /[^\t\r\n]*/y }

/** The first separator of the first line outside quotes; a comma if it has none. */
const separatorOf = (text: string): keyof typeof plainFields => {
  const [, found] = /^(?:"[^"]*"|[^",;\t\r\n])*([;\t])/.exec(text) ?? []
  return found === ";" || found === "\t" ? found : ","
}

const linesIn = (text: string): number => text.split(/\r\n|\r|\n/).length - 1

const matchAt = (pattern: RegExp, text: string, at: number) => {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** Records in order. Empty lines are skipped. The names of columns in the first line must contain no separator. */
export function* records(text: string): Generator<CsvRecord | OpenQuote, void, void> {
  const separator = separatorOf(text)
  let at = 0
  let line = 1
  while (at < text.length) {
    const first = line
    const fields: Array<string> = []
    for (;;) {
      const [inQuotes = "", value = "", end] = matchAt(quotedField, text, at) ?? []
      if (end === "") return yield { line, fields: null }
      at += inQuotes.length
      line += linesIn(inQuotes)
      // Text after a closing quote belongs to the field, as in spreadsheets.
      const [rest = ""] = matchAt(plainFields[separator], text, at) ?? []
      at += rest.length
      fields.push(value.replaceAll('""', '"') + rest)
      if (text[at] !== separator) break
      at++
    }
    at += text.startsWith("\r\n", at) ? 2 : 1
    line++
    if (fields.length > 1 || fields[0]?.trim() !== "") yield { line: first, fields }
  }
}
