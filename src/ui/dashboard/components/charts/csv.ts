/** Tables as files of comma-separated values. */

export type Cell = string | number | null

/** A text that a spreadsheet would take for a formula is one no longer. */
const harmless = (text: string) => (/^[=+\-@\t\r]/u.test(text) ? `'${text}` : text)

const cellOf = (cell: Cell): string => {
  if (cell === null) return ""
  if (typeof cell === "number") return String(cell)
  const text = harmless(cell)
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** As RFC 4180 has it; numbers with a point, whatever the language, and nothing where there is no value. */
export const csvOf = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<Cell>>): string =>
  [header, ...rows].map((row) => `${row.map(cellOf).join(",")}\r\n`).join("")
