/** Tables as files of comma-separated values. */

export type Cell = string | number | null

/** Escapes a text that a spreadsheet would read as a formula. */
const harmless = (text: string) => (/^[=+\-@\t\r]/u.test(text) ? `'${text}` : text)

const cellOf = (cell: Cell): string => {
  if (cell === null) return ""
  if (typeof cell === "number") return String(cell)
  const text = harmless(cell)
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** RFC 4180; numbers with a decimal point in every language, empty for missing values. */
export const csvOf = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<Cell>>): string =>
  [header, ...rows].map((row) => `${row.map(cellOf).join(",")}\r\n`).join("")
