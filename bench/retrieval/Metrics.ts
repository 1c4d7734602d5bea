/** Quality measures of a ranking. */

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

/** The share of relevant documents among the first `depth`. */
export const recall = (
  ranking: ReadonlyArray<string>,
  relevant: ReadonlyMap<string, number>,
  depth = 10
): number => ranking.slice(0, depth).filter((id) => relevant.has(id)).length / relevant.size
