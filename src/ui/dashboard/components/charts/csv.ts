/** Tables as CSV. */

export type Cell = string | number | null

/** Escapes a text that a spreadsheet would read as a formula. */
const escapeFormula = (text: string) => (/^[=+\-@\t\r]/u.test(text) ? `'${text}` : text)

const formatCell = (cell: Cell): string => {
  if (cell === null) return ""
  if (typeof cell === "number") return String(cell)
  const text = escapeFormula(cell)
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** CSV by RFC 4180. Numbers have a decimal point in every language. Null is an empty cell. */
export const csvOf = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<Cell>>): string =>
  [header, ...rows].map((row) => `${row.map(formatCell).join(",")}\r\n`).join("")
