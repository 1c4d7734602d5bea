/** Comma-separated values (RFC 4180): quoted fields may contain commas, doubled quotes and line breaks. */

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
const plainField = /[^,\r\n]*/y

const linesIn = (text: string): number => text.split(/\r\n|\r|\n/).length - 1

const matchAt = (pattern: RegExp, text: string, at: number) => {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** Records in order. Empty lines are skipped. */
export function* records(text: string): Generator<CsvRecord | OpenQuote, void, void> {
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
      const [rest = ""] = matchAt(plainField, text, at) ?? []
      at += rest.length
      fields.push(value.replaceAll('""', '"') + rest)
      if (text[at] !== ",") break
      at++
    }
    at += text.startsWith("\r\n", at) ? 2 : 1
    line++
    if (fields.length > 1 || fields[0]?.trim() !== "") yield { line: first, fields }
  }
}
