/** How good a ranking is, and how sure a difference between two. */

/** nDCG at `depth`: gains discounted by log2 of the place, as a share of the best order of all that is relevant. */
export const ndcg = (
  ranking: ReadonlyArray<string>,
  relevant: ReadonlyMap<string, number>,
  depth = 10
): number => {
  const sum = (gains: ReadonlyArray<number>) =>
    gains.slice(0, depth).reduce((total, gain, place) => total + gain / Math.log2(place + 2), 0)
  const best = sum([...relevant.values()].toSorted((one, other) => other - one))
  return best === 0 ? 0 : sum(ranking.map((id) => relevant.get(id) ?? 0)) / best
}

/** The share of what is relevant that is among the first `depth`. */
export const recall = (
  ranking: ReadonlyArray<string>,
  relevant: ReadonlyMap<string, number>,
  depth = 10
): number => ranking.slice(0, depth).filter((id) => relevant.has(id)).length / relevant.size

export const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

const samples = 2_000

/** 95 % interval of the mean of paired differences, by resampling; the same every time. */
export const interval = (differences: ReadonlyArray<number>): readonly [low: number, high: number] => {
  let state = 1
  const roll = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * differences.length)
  }
  const means = Array.from({ length: samples }, () => mean(differences.map(() => differences[roll()] ?? 0)))
  const sorted = means.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor(share * (samples - 1))] ?? 0
  return [at(0.025), at(0.975)]
}
