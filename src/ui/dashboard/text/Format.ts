/** Numbers, dates and distances in time, as the language chosen writes them. */
import { useLanguage } from "./Language.tsx"

const units: ReadonlyArray<readonly [Intl.RelativeTimeFormatUnit, number]> = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60]
]

/** The language with the region that its reader prefers: English dates are not the same everywhere. */
const localeOf = (language: string) =>
  navigator.languages.find((tag) => tag.toLowerCase().startsWith(`${language}-`)) ?? language

export const useFormat = () => {
  const locale = localeOf(useLanguage().language)
  return {
    number: (value: number) => new Intl.NumberFormat(locale).format(value),
    percent: (value: number) =>
      new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }).format(value),
    /** Billionths of a US dollar; of less than a dollar as many digits as say something. */
    money: (nanoUsd: number) =>
      new Intl.NumberFormat(locale, {
        style: "currency",
        currency: "USD",
        ...(nanoUsd === 0 || nanoUsd >= 1e9 ? {} : { maximumSignificantDigits: 3 })
      }).format(nanoUsd / 1e9),
    /** With date and time. */
    moment: (iso: string) =>
      new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso)),
    day: (iso: string) =>
      new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(iso)),
    /** "3 minutes ago". */
    ago: (iso: string) => {
      const seconds = (new Date(iso).getTime() - Date.now()) / 1_000
      const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto" })
      for (const [unit, length] of units) {
        if (Math.abs(seconds) >= length) return format.format(Math.round(seconds / length), unit)
      }
      return format.format(Math.round(seconds / 60), "minute")
    }
  }
}
