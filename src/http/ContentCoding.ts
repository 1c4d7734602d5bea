/** The weight of a coding that the client refuses. */
const refused = /;\s*q=0(?:\.0*)?$/

/** Whether `accepted`, the header `accept-encoding`, allows `coding`. */
export const acceptsCoding = (accepted: string | undefined, coding: "br" | "gzip"): boolean =>
  (accepted ?? "").split(",").some((one) => {
    const given = one.trim().toLowerCase()
    return given.split(";", 1)[0]?.trim() === coding && !refused.test(given)
  })
