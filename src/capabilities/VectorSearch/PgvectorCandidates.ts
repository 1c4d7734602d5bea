/** How many candidates by meaning a search of a larger agent takes, and how far its index looks for them. */

/** Minimum and maximum number of candidates, and number per requested chunk. */
const minNearest = 40
export const maxNearest = 150
const candidatesPerChunk = 8

/** Number of candidates by meaning that an approximate search requests. */
export const nearest = ({ topK }: { readonly topK: number }): number =>
  Math.min(maxNearest, Math.max(minNearest, candidatesPerChunk * topK))

/**
 * Numbers of chunks, and the search breadth of the index up to each. It is chosen to find 97 % of the nearest ten even if
 * vectors are evenly spread, as in the benchmark. Vectors of real models have clusters, and need a fifth of it.
 */
const breadths = [
  [50_000, 150],
  [200_000, 300],
  [500_000, 600]
] as const
const maxBreadth = 1_400

/**
 * Number of vectors among which the index of an agent finds `candidates`. A larger graph needs more for the same recall.
 * pgvector yields at most 1,000 at a time, and more in several rounds.
 */
export const breadthOf = (chunks: number, candidates: number): number => {
  const [, breadth] = breadths.find(([size]) => chunks <= size) ?? [0, maxBreadth]
  return Math.max(breadth, candidates)
}
