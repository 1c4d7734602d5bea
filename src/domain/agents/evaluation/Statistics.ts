/** Confidence intervals of figures over a set of cases. They are deterministic. */

export interface Interval {
  readonly low: number
  readonly high: number
}

export const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

/** Normal quantile of a 95 % interval. */
const z = 1.959_963_985

/** 95 % interval of a share of `of` cases, by Wilson's score; 0 to 1 when there are none. */
export const wilson = (successes: number, of: number): Interval => {
  if (of === 0) return { low: 0, high: 1 }
  const share = successes / of
  const scale = 1 + z ** 2 / of
  const centre = (share + z ** 2 / (2 * of)) / scale
  const half = (z * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2))) / scale
  return {
    low: successes === 0 ? 0 : Math.max(0, centre - half),
    high: successes === of ? 1 : Math.min(1, centre + half)
  }
}

/** The probability that a fair coin shows heads `heads` times or more in `heads + tails` throws. */
export const signTest = (heads: number, tails: number): number => {
  const throws = heads + tails
  // The binomial coefficient is computed as a logarithm, because it overflows a number, and 2 ** -throws underflows one.
  let logarithm = 0
  let sum = 0
  for (let count = 0; count <= throws; count++) {
    if (count > 0) logarithm += Math.log((throws - count + 1) / count)
    if (count >= heads) sum += Math.exp(logarithm - throws * Math.LN2)
  }
  return Math.min(1, sum)
}

const samples = 2_000

/** 95 % interval of the mean of `values`, by resampling them with a fixed seed. */
export const bootstrap = (values: ReadonlyArray<number>): Interval => {
  const given = Float64Array.from(values)
  const means = new Float64Array(samples)
  let state = 1
  for (let sample = 0; sample < samples; sample++) {
    let sum = 0
    for (let drawn = 0; drawn < given.length; drawn++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      sum += given[Math.floor((state / 2 ** 32) * given.length)] ?? 0
    }
    means[sample] = sum / given.length
  }
  means.sort()
  const at = (share: number) => means[Math.floor(share * (samples - 1))] ?? 0
  return { low: at(0.025), high: at(0.975) }
}

/** The value that a `share` of `values` does not exceed, by nearest rank; null when there are none. */
export const percentile = (values: ReadonlyArray<number>, share: number): number | null => {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
