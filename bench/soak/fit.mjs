/** Trends in the samples of a soak: a line through their last two thirds, and the bounds that it must keep. */

/** The slope of a least-squares line through `[x, y]`, in y for an x, and the slope's standard error. */
export const lineOf = (points) => {
  const mean = (place) => points.reduce((sum, point) => sum + point[place], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const spread = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
  if (points.length < 3 || spread === 0) return { slope: 0, error: Infinity }
  const slope = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0) / spread
  const left = points.reduce((sum, point) => sum + (point[1] - y - slope * (point[0] - x)) ** 2, 0)
  return { slope, error: Math.sqrt(left / (points.length - 2) / spread) }
}

/** The first third warms up: caches fill, code is compiled. */
export const steady = (samples) => samples.slice(Math.floor(samples.length / 3))

export const fields = ["heapMiB", "externalMiB", "rssMiB", "fds", "resources", "timers", "connections"]

/** For each field how much it grows in an hour by the line, how uncertain that is, and its minimum and maximum there. */
export const trends = (samples) => {
  const kept = steady(samples)
  return Object.fromEntries(
    fields
      .filter((field) => kept.every((sample) => typeof sample[field] === "number"))
      .map((field) => {
        const values = kept.map((sample) => sample[field])
        const { error, slope } = lineOf(kept.map((sample) => [sample.seconds / 3_600, sample[field]]))
        const [perHour, uncertain] = [slope, error].map((value) => Number(value.toFixed(2)))
        return [field, { perHour, uncertain, min: Math.min(...values), max: Math.max(...values) }]
      })
  )
}

/** What a soak must not pass. Growth by the hour is held against soaks of at least ten minutes: shorter ones still warm up. */
export const bounds = {
  heapMiBPerHour: 12,
  fdsPerHour: 6,
  resourcesPerHour: 6,
  timersPerHour: 6,
  heapMiB: { server: 160, embedded: 220 },
  /** More at rest after the load than before it. */
  atRest: { fds: 4, resources: 4, timers: 4 }
}

const minutesForSlopes = 10

/** Messages about exceeded bounds; none if all is well. */
export const complaints = (engine, { samples, rest, errors, requests }) => {
  const said = []
  const seconds = samples.at(-1)?.seconds ?? 0
  const found = trends(samples)
  // A slope within its uncertainty is not growth.
  const sure = (line) => line && Number((line.perHour - 2 * line.uncertain).toFixed(2))
  const over = (what, value, bound) => {
    if (value === undefined || Number.isNaN(value)) said.push(`${engine}: ${what} was not measured`)
    else if (value > bound) said.push(`${engine}: ${what} is ${value}, more than ${bound}`)
  }
  if (requests === 0) said.push(`${engine}: nothing was asked`)
  over("failed requests", errors, 0)
  over("the heap in MiB", found.heapMiB?.max, bounds.heapMiB[engine])
  for (const [field, bound] of Object.entries(bounds.atRest)) {
    over(`growth of ${field} at rest`, rest.after[field] - rest.before[field], bound)
  }
  if (seconds >= minutesForSlopes * 60) {
    over("the heap's growth in MiB an hour", sure(found.heapMiB), bounds.heapMiBPerHour)
    over("growth of descriptors an hour", sure(found.fds), bounds.fdsPerHour)
    over("growth of handles an hour", sure(found.resources), bounds.resourcesPerHour)
    over("growth of timers an hour", sure(found.timers), bounds.timersPerHour)
  }
  return said
}

/** At most `maxSamples` of them, evenly spaced, including the last. */
export const thinned = (samples, maxSamples = 60) => {
  const step = Math.max(1, Math.ceil(samples.length / maxSamples))
  return samples.filter((_, place) => (samples.length - 1 - place) % step === 0)
}
