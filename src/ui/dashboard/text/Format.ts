/** Formats numbers, dates and relative times in the chosen language. */
import { useLanguage } from "./Language.tsx"

const units: ReadonlyArray<readonly [Intl.RelativeTimeFormatUnit, number]> = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60]
]

const sizes = [
  ["gigabyte", 1e9],
  ["megabyte", 1e6]
] as const

/** The language with the user's region, because date formats differ by region. */
const localeOf = (language: string) =>
  navigator.languages.find((tag) => tag.toLowerCase().startsWith(`${language}-`)) ?? language

const formatsOf = (locale: string) => {
  // Formatters of long lists are shared, because creating one takes as long as a hundred uses.
  const numbers = new Intl.NumberFormat(locale)
  const moments = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" })
  const distances = new Intl.RelativeTimeFormat(locale, { numeric: "auto" })
  return {
    number: (value: number) => numbers.format(value),
    percent: (value: number) =>
      new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }).format(value),
    /** Formats milliseconds as seconds. */
    seconds: (milliseconds: number) =>
      `${new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(milliseconds / 1_000)} s`,
    /** Formats billionths of a US dollar. Amounts below a dollar have three significant digits. */
    money: (nanoUsd: number) =>
      new Intl.NumberFormat(locale, {
        style: "currency",
        currency: "USD",
        ...(nanoUsd === 0 || nanoUsd >= 1e9 ? {} : { maximumSignificantDigits: 3 })
      }).format(nanoUsd / 1e9),
    /** A size in kilobytes, megabytes or gigabytes. */
    bytes: (size: number) => {
      const [unit, length] = sizes.find(([, bytes]) => size >= bytes) ?? (["kilobyte", 1_000] as const)
      return new Intl.NumberFormat(locale, {
        style: "unit",
        unit,
        maximumSignificantDigits: size < length ? 1 : 3
      }).format(size / length)
    },
    /** The name of a language by its ISO 639-1 code. */
    language: (code: string) => new Intl.DisplayNames(locale, { type: "language" }).of(code) ?? code,
    /** A month, written as YYYY-MM. */
    month: (month: string) =>
      new Intl.DateTimeFormat(locale, { month: "long", year: "numeric", timeZone: "UTC" }).format(
        new Date(`${month}-01T00:00:00Z`)
      ),
    /** With date and time. */
    moment: (iso: string) => moments.format(new Date(iso)),
    day: (iso: string) =>
      new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(iso)),
    /** A day without its year, for axes. */
    dayOfMonth: (iso: string) =>
      new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: "UTC" }).format(
        new Date(iso)
      ),
    /** A short relative time: "now", "5m", "3h", "2d", then the date. */
    since: (iso: string, now: string) => {
      const date = new Date(iso)
      const seconds = (Date.now() - date.getTime()) / 1_000
      if (seconds < 60) return now
      for (const [unit, length] of units) {
        if (length > 86_400 || seconds < length) continue
        const count = Math.floor(seconds / length)
        if (unit === "day" && count > 6) break
        return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "narrow" }).format(count)
      }
      const year =
        date.getFullYear() === new Date().getFullYear() ? ({} as const) : ({ year: "2-digit" } as const)
      return new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", ...year }).format(date)
    },
    /** The time of day. */
    time: (iso: string) => new Intl.DateTimeFormat(locale, { timeStyle: "short" }).format(new Date(iso)),
    /** A day with its weekday, in the user's time zone. */
    date: (iso: string) => new Intl.DateTimeFormat(locale, { dateStyle: "full" }).format(new Date(iso)),
    /** "3 minutes ago". */
    ago: (iso: string) => {
      const seconds = (new Date(iso).getTime() - Date.now()) / 1_000
      for (const [unit, length] of units) {
        if (Math.abs(seconds) >= length) return distances.format(Math.round(seconds / length), unit)
      }
      return distances.format(Math.round(seconds / 60), "minute")
    }
  }
}

const formatsByLocale = new Map<string, ReturnType<typeof formatsOf>>()

/** Formatting functions. They are the same objects until the language changes. */
export const useFormat = () => {
  const locale = localeOf(useLanguage().language)
  const formats = formatsByLocale.get(locale) ?? formatsOf(locale)
  formatsByLocale.set(locale, formats)
  return formats
}
