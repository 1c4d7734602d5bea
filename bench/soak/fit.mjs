/** Trends in the samples of a soak: a line through their last two thirds, and the bounds that it must keep. */

/** The slope of a least-squares line through `[x, y]`, in y for an x, and the slope's standard error. */
export const lineOf = (points) => {
  const mean = (place) => points.reduce((sum, point) => sum + point[place], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const spread = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
  if (points.length < 3 || spread === 0) return { slope: 0, error: Infinity }
  const slope = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0) / spread
  const residual = points.reduce((sum, point) => sum + (point[1] - y - slope * (point[0] - x)) ** 2, 0)
  return { slope, error: Math.sqrt(residual / (points.length - 2) / spread) }
}

/** The first third warms up: caches fill, code is compiled. */
export const steady = (samples) => samples.slice(Math.floor(samples.length / 3))

export const fields = ["heapMiB", "externalMiB", "rssMiB", "fds", "resources", "timers", "connections"]

/** For each field its growth in an hour by the line, how uncertain that is, and its minimum and maximum. */
export const trends = (samples) => {
  const steadySamples = steady(samples)
  return Object.fromEntries(
    fields
      .filter((field) => steadySamples.every((sample) => typeof sample[field] === "number"))
      .map((field) => {
        const values = steadySamples.map((sample) => sample[field])
        const { error, slope } = lineOf(
          steadySamples.map((sample) => [sample.seconds / 3_600, sample[field]])
        )
        const [perHour, uncertain] = [slope, error].map((value) => Number(value.toFixed(2)))
        return [field, { perHour, uncertain, min: Math.min(...values), max: Math.max(...values) }]
      })
  )
}

/** The limits of a soak. Growth by the hour is checked after at least ten minutes: shorter soaks still warm up. */
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
export const violationsOf = (engine, { samples, rest, errors, requests }) => {
  const messages = []
  const seconds = samples.at(-1)?.seconds ?? 0
  const found = trends(samples)
  // A slope within its uncertainty is not growth.
  const certainGrowth = (line) => line && Number((line.perHour - 2 * line.uncertain).toFixed(2))
  const checkBound = (what, value, bound) => {
    if (value === undefined || Number.isNaN(value)) messages.push(`${engine}: ${what} was not measured`)
    else if (value > bound) messages.push(`${engine}: ${what} is ${value}, more than ${bound}`)
  }
  if (requests === 0) messages.push(`${engine}: nothing was asked`)
  checkBound("failed requests", errors, 0)
  checkBound("the heap in MiB", found.heapMiB?.max, bounds.heapMiB[engine])
  for (const [field, bound] of Object.entries(bounds.atRest)) {
    checkBound(`growth of ${field} at rest`, rest.after[field] - rest.before[field], bound)
  }
  if (seconds >= minutesForSlopes * 60) {
    checkBound("the heap's growth in MiB an hour", certainGrowth(found.heapMiB), bounds.heapMiBPerHour)
    checkBound("growth of descriptors an hour", certainGrowth(found.fds), bounds.fdsPerHour)
    checkBound("growth of handles an hour", certainGrowth(found.resources), bounds.resourcesPerHour)
    checkBound("growth of timers an hour", certainGrowth(found.timers), bounds.timersPerHour)
  }
  return messages
}

/** At most `maxSamples` of them, evenly spaced, including the last. */
export const thinOut = (samples, maxSamples = 60) => {
  const step = Math.max(1, Math.ceil(samples.length / maxSamples))
  return samples.filter((_, place) => (samples.length - 1 - place) % step === 0)
}
