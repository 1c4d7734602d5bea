/** Days of a chart: those without data are drawn, too. */

const millisPerDay = 86_400_000

/** Maximum number of days in a chart. */
const maxDays = 400

/** Every day in UTC from that of `from` up to that of the last moment before `to`, as YYYY-MM-DD; at least one. */
export const daysBetween = (from: string, to: string): ReadonlyArray<string> => {
  const first = Math.floor(Date.parse(from) / millisPerDay)
  const last = Math.floor((Date.parse(to) - 1) / millisPerDay)
  const count = Math.min(maxDays, Math.max(1, last - first + 1))
  return Array.from({ length: count }, (_, place) =>
    new Date((first + place) * millisPerDay).toISOString().slice(0, 10)
  )
}
