/** The months that can be chosen. */

/** The newest `count` months in UTC up to that of `now`, as YYYY-MM, the newest first. */
export const monthsUntil = (now: Date, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 1)).toISOString().slice(0, 7)
  )
