/**
 * Finds the best chunks. Every cosine is first bounded, and only those that the bounds leave undecided are computed
 * exactly. With many chunks, bounds are computed only for chunks that may be among the best by their words and by the
 * signs of their vectors.
 */
import { TopRanked, expectedCosine, fuse, type Ranked } from "../../search/Fusion.ts"
import type { QueryWords } from "../../search/Query.ts"
import type { Vectors } from "../../search/vectors/Vectors.ts"

/** Number of chunks up to which all cosines are bounded. With more, only the most promising are. */
const maxExhaustiveChunks = 512
/** Minimum number of best candidates that are bounded first. */
const minLeadingCandidates = 32
/** Number of chunks that are bounded together. */
const batchSize = 512

export interface RankQuery {
  readonly words: QueryWords
  readonly vector: Float32Array | undefined
  readonly lexicalWeight: number
  readonly topK: number
  readonly minScore: number
  /** Minimum where words alone decide; default: `minScore`. */
  readonly minWordScore?: number | undefined
  /** Only chunks of these sources; default: all. */
  readonly sources?: ReadonlySet<string> | undefined
}

/** The chunks to rank: `slots` of an index, ascending. */
export interface Ranking {
  readonly vectors: Vectors
  readonly ids: ReadonlyArray<string>
  /** By slot. */
  readonly lexical: Float64Array
  readonly slots: Int32Array
}

/** Keeps the `size` greatest numbers, and the score that a candidate has to exceed. */
class TopScores {
  readonly #kept: Float64Array
  #count = 0
  readonly #minScore: number

  constructor(size: number, minScore: number) {
    this.#kept = new Float64Array(size)
    this.#minScore = minScore
  }

  /** The score that a new candidate has to exceed. */
  get threshold(): number {
    const full = this.#count === this.#kept.length
    return full ? Math.max(this.#minScore, this.#kept[this.#count - 1] ?? 0) : this.#minScore
  }

  offer(value: number): void {
    const kept = this.#kept
    if (this.#count === kept.length && value <= (kept[this.#count - 1] ?? 0)) return
    let index = Math.min(this.#count, kept.length - 1)
    for (; index > 0 && (kept[index - 1] ?? 0) < value; index--) kept[index] = kept[index - 1] ?? 0
    kept[index] = value
    if (this.#count < kept.length) this.#count++
  }
}

/** Substitute for the cosine of a chunk without a vector. Without common words such a chunk is not a hit. */
type Expected = (words: number) => number

const expectedOf = (vectors: Vectors, vector: Float32Array, chunks: number): Expected => {
  if (vectors.count >= chunks) return () => 0
  const { deviation, mean } = vectors.spread(vector)
  const expected = expectedCosine(mean, deviation)
  return (words) => (words > 0 ? expected : 0)
}

/** The scores of chunks from words and cosines, which are NaN without a vector. */
const makeScore = (lexicalWeight: number, expected: Expected) => (words: number, cosine: number) =>
  lexicalWeight * words + (1 - lexicalWeight) * Math.max(0, Number.isNaN(cosine) ? expected(words) : cosine)

type ScoreOf = ReturnType<typeof makeScore>

/** Bounds the scores of slots, and keeps those that may be among the best. */
const makeBounds = (
  query: RankQuery,
  vector: Float32Array,
  { lexical, vectors }: Ranking,
  scoreOf: ScoreOf
) => {
  const { lexicalWeight, minScore, topK } = query
  const quantized = vectors.quantizeQuery(vector)
  const topScores = new TopScores(topK, minScore)
  const slots: Array<number> = []
  const upperBounds: Array<number> = []
  return {
    topScores,
    take: (candidates: Int32Array) => {
      const { cosine, margin } = vectors.bounds(quantized, candidates)
      for (let index = 0; index < candidates.length; index++) {
        const slot = candidates[index] ?? 0
        const score = scoreOf(lexical[slot] ?? 0, cosine[index] ?? Number.NaN)
        const scoreMargin = (1 - lexicalWeight) * (margin[index] ?? 0)
        if (score + scoreMargin < topScores.threshold) continue
        topScores.offer(score - scoreMargin)
        slots.push(slot)
        upperBounds.push(score + scoreMargin)
      }
    },
    /** The slots whose upper bound reaches the final limit. */
    remaining: () => slots.filter((_, index) => (upperBounds[index] ?? 0) >= topScores.threshold)
  }
}

/** The slots that may be among the best, by words and meaning. */
const candidateSlots = (
  query: RankQuery,
  vector: Float32Array,
  ranking: Ranking,
  expected: Expected
): ReadonlyArray<number> => {
  const { lexical, slots, vectors } = ranking
  const { lexicalWeight, minScore, topK } = query
  const scoreOf = makeScore(lexicalWeight, expected)
  const bounds = makeBounds(query, vector, ranking, scoreOf)
  if (slots.length <= maxExhaustiveChunks) {
    bounds.take(slots)
    return bounds.remaining()
  }
  const estimates = vectors.estimates(vector, lexical.length)
  const maxError = (1 - lexicalWeight) * estimates.slack
  const scores = new Float64Array(slots.length)
  const leading = new TopScores(Math.max(topK, minLeadingCandidates), minScore)
  for (let index = 0; index < slots.length; index++) {
    const slot = slots[index] ?? 0
    const score = scoreOf(lexical[slot] ?? 0, estimates.cosine[slot] ?? Number.NaN)
    scores[index] = score
    leading.offer(score)
  }
  const pending = new Int32Array(batchSize)
  let count = 0
  const take = (slot: number) => {
    pending[count++] = slot
    if (count === batchSize) flush()
  }
  const flush = () => {
    bounds.take(pending.subarray(0, count))
    count = 0
  }
  const leadingThreshold = leading.threshold
  for (let index = 0; index < slots.length; index++) {
    if ((scores[index] ?? 0) >= leadingThreshold) take(slots[index] ?? 0)
  }
  flush()
  // The minimum that all others have to reach.
  const minEstimate = bounds.topScores.threshold - maxError
  for (let index = 0; index < slots.length; index++) {
    const score = scores[index] ?? 0
    if (score < leadingThreshold && score >= minEstimate) take(slots[index] ?? 0)
  }
  flush()
  return bounds.remaining()
}

/** Best first; ties by id. */
export const rank = (query: RankQuery, ranking: Ranking): ReadonlyArray<Ranked> => {
  const { ids, lexical, slots, vectors } = ranking
  const { lexicalWeight, minScore, minWordScore = minScore, topK, vector } = query
  if (vector === undefined || vectors.count === 0) {
    const best = new TopRanked(topK, minWordScore)
    for (const slot of slots) best.offer(ids[slot] ?? "", fuse(lexicalWeight, lexical[slot] ?? 0, undefined))
    return best.all
  }
  const best = new TopRanked(topK, minScore)
  const expected = expectedOf(vectors, vector, lexical.length)
  for (const slot of candidateSlots(query, vector, ranking, expected)) {
    const words = lexical[slot] ?? 0
    const cosine = vectors.has(slot) ? vectors.cosine(slot, vector) : expected(words)
    best.offer(ids[slot] ?? "", fuse(lexicalWeight, words, cosine))
  }
  return best.all
}
