/** Formats numbers of a workbook. Its styles determine which are dates, times and percentages. */
import * as DateTime from "effect/DateTime"
import { attribute, scan } from "../../domain/Xml.ts"

/** `hours` and `seconds` are durations, the latter shown with seconds. */
export type CellFormat = "plain" | "date" | "percent" | "hours" | "seconds"

/** Built-in number formats of dates and times (ECMA-376, 18.8.30). */
const isBuiltInDate = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)

/** Colours, quoted text and escaped characters may contain any letters, so they are removed first. */
const formatOfCode = (code: string): CellFormat => {
  const bare = code.replace(/\[(?![hms]+\])[^\]]{0,100}\]|"[^"]{0,200}"|\\./gi, "")
  if (/\[[hms]+\]/i.test(bare)) return /s/i.test(bare) ? "seconds" : "hours"
  if (/[ymdhs]/i.test(bare) && !/[#0?]/.test(bare.replace(/\.0+/g, ""))) return "date"
  return bare.includes("%") ? "percent" : "plain"
}

/** The format of each cell style, in the order of the cells' style indexes. */
export const cellFormats = (styles: string): ReadonlyArray<CellFormat> => {
  const customFormats = new Map<number, CellFormat>()
  const formats: Array<CellFormat> = []
  let inCells = false
  const formatOf = (id: number): CellFormat => {
    if (id === 46) return "seconds"
    if (isBuiltInDate(id)) return "date"
    return customFormats.get(id) ?? (id === 9 || id === 10 ? "percent" : "plain")
  }
  scan(styles, {
    open: (name, tag) => {
      if (name === "cellXfs") inCells = true
      else if (name === "numFmt")
        customFormats.set(Number(attribute(tag, "numFmtId")), formatOfCode(attribute(tag, "formatCode")))
      else if (name === "xf" && inCells) formats.push(formatOf(Number(attribute(tag, "numFmtId"))))
    },
    close: (name) => {
      if (name === "cellXfs") inCells = false
    },
    text: () => undefined
  })
  return formats
}

const millisPerDay = 86_400_000
/** Days from a workbook's epoch, in 1900 or in 1904, to 1970. */
const epoch1900 = 25_569
const epoch1904 = 24_107
/** The last day that a workbook can represent, in the year 9999. */
const lastDay = 2_958_465

const dateText = (days: number, from1904: boolean): string => {
  // Workbooks count a 29th of February 1900, the day 60, that did not exist.
  const epoch = from1904 ? epoch1904 : days < 60 ? epoch1900 - 1 : epoch1900
  const seconds = Math.round((days - epoch) * 86_400)
  const iso = DateTime.formatIso(DateTime.unsafeMake(seconds * 1_000))
  const time = iso.slice(11, 19).replace(/:00$/, "")
  if (days < 1) return time
  return (seconds * 1_000) % millisPerDay === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`
}

const durationText = (days: number, withSeconds: boolean): string => {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const parts = [Math.floor(seconds / 60) % 60, ...(withSeconds ? [seconds % 60] : [])]
  const shown = [Math.floor(seconds / 3_600), ...parts.map((part) => String(part).padStart(2, "0"))].join(":")
  return days < 0 ? `-${shown}` : shown
}

/** Decodes the characters that workbooks escape, such as `_x000D_`. */
export const unescapedText = (text: string): string =>
  text.replace(/_x([0-9a-f]{4})_/gi, (_, code) => String.fromCharCode(Number.parseInt(String(code), 16)))

/**
 * A number in the format of its style: `2024-02-29`, `08:30`, `40:00`, `12.5%`. Long binary fractions are rounded. Whole
 * numbers, which may be identifiers, stay as they are written.
 */
export const displayedValue = (value: string, format: CellFormat, from1904: boolean): string => {
  const number = Number(value)
  if (value.trim() === "" || !Number.isFinite(number)) return value
  if (format === "date" && number >= 0 && number <= lastDay) return dateText(number, from1904)
  if ((format === "hours" || format === "seconds") && Math.abs(number) <= lastDay)
    return durationText(number, format === "seconds")
  if (format !== "percent" && /^-?\d{1,40}$/.test(value)) return value
  return format === "percent"
    ? `${Number((number * 100).toPrecision(12))}%`
    : String(Number(number.toPrecision(15)))
}
