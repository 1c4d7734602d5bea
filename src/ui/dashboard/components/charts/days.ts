/** The days of a chart, including those without data. */

const millisPerDay = 86_400_000

/** Maximum number of days in a chart. */
const maxDays = 400

/** All days in UTC from `from` until `to`, which is exclusive, as YYYY-MM-DD. At least one. */
export const daysBetween = (from: string, to: string): ReadonlyArray<string> => {
  const first = Math.floor(Date.parse(from) / millisPerDay)
  const last = Math.floor((Date.parse(to) - 1) / millisPerDay)
  const count = Math.min(maxDays, Math.max(1, last - first + 1))
  return Array.from({ length: count }, (_, place) =>
    new Date((first + place) * millisPerDay).toISOString().slice(0, 10)
  )
}
