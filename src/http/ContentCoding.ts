/** The weight of a coding that the client refuses. */
const zeroWeight = /;\s*q=0(?:\.0*)?$/

/** Whether `accepted`, the header `accept-encoding`, allows `coding`. */
export const acceptsCoding = (accepted: string | undefined, coding: "br" | "gzip"): boolean =>
  (accepted ?? "").split(",").some((entry) => {
    const value = entry.trim().toLowerCase()
    return value.split(";", 1)[0]?.trim() === coding && !zeroWeight.test(value)
  })
