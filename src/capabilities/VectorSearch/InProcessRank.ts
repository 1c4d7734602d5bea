/**
 * Which chunks are the best. Every cosine is known within narrow bounds before any is computed exactly, which is then done
 * for those alone that the bounds leave in question. Of many chunks only those have bounds that may be among the best by
 * their words and by what the signs of their vectors say.
 */
import { Best, fuse, type Ranked } from "../../search/Fusion.ts"
import type { Vectors } from "../../search/vectors/Vectors.ts"

/** Up to this many chunks all cosines are bounded; beyond, those of the most promising. */
const exhaustive = 512
/** Those that seem best are bounded first: at least so many. */
const leading = 32
/** Chunks that are bounded together. */
const batch = 512

export interface RankQuery {
  readonly terms: ReadonlyMap<string, number>
  readonly vector: Float32Array | undefined
  readonly lexicalWeight: number
  readonly topK: number
  readonly minScore: number
  /** Only chunks of these sources; all when left out. */
  readonly sources?: ReadonlySet<string> | undefined
}

/** What is ranked: `slots` of an index, ascending. */
export interface Ranking {
  readonly vectors: Vectors
  readonly ids: ReadonlyArray<string>
  /** By slot. */
  readonly lexical: Float64Array
  readonly slots: Int32Array
}

/** The `size` greatest of the numbers it is offered, as far as the least of them is of interest. */
class Bar {
  readonly #kept: Float64Array
  #count = 0
  readonly #least: number

  constructor(size: number, least: number) {
    this.#kept = new Float64Array(size)
    this.#least = least
  }

  /** What a newcomer has to reach. */
  get height(): number {
    const full = this.#count === this.#kept.length
    return full ? Math.max(this.#least, this.#kept[this.#count - 1] ?? 0) : this.#least
  }

  offer(value: number): void {
    const kept = this.#kept
    if (this.#count === kept.length && value <= (kept[this.#count - 1] ?? 0)) return
    let place = Math.min(this.#count, kept.length - 1)
    for (; place > 0 && (kept[place - 1] ?? 0) < value; place--) kept[place] = kept[place - 1] ?? 0
    kept[place] = value
    if (this.#count < kept.length) this.#count++
  }
}

const scoreOf = (lexicalWeight: number, words: number, cosine: number): number =>
  Number.isNaN(cosine) ? words : lexicalWeight * words + (1 - lexicalWeight) * Math.max(0, cosine)

/** Bounds the scores of slots, and keeps those that may yet be among the best. */
const makeBounds = (query: RankQuery, vector: Float32Array, { lexical, vectors }: Ranking) => {
  const { lexicalWeight, minScore, topK } = query
  const quantized = vectors.quantizeQuery(vector)
  const bar = new Bar(topK, minScore)
  const slots: Array<number> = []
  const highest: Array<number> = []
  return {
    bar,
    take: (some: Int32Array) => {
      const { cosine, margin } = vectors.bounds(quantized, some)
      for (let place = 0; place < some.length; place++) {
        const slot = some[place] ?? 0
        const score = scoreOf(lexicalWeight, lexical[slot] ?? 0, cosine[place] ?? Number.NaN)
        const off = (1 - lexicalWeight) * (margin[place] ?? 0)
        if (score + off < bar.height) continue
        bar.offer(score - off)
        slots.push(slot)
        highest.push(score + off)
      }
    },
    /** The slots that may reach the bar as it is in the end. */
    left: () => slots.filter((_, place) => (highest[place] ?? 0) >= bar.height)
  }
}

/** The slots that may be among the best, by words and by meaning. */
const promising = (query: RankQuery, vector: Float32Array, ranking: Ranking): ReadonlyArray<number> => {
  const { lexical, slots, vectors } = ranking
  const { lexicalWeight, minScore, topK } = query
  const bounds = makeBounds(query, vector, ranking)
  if (slots.length <= exhaustive) {
    bounds.take(slots)
    return bounds.left()
  }
  const estimates = vectors.estimates(vector, lexical.length)
  const slack = (1 - lexicalWeight) * estimates.slack
  const scores = new Float64Array(slots.length)
  const front = new Bar(Math.max(topK, leading), minScore)
  for (let place = 0; place < slots.length; place++) {
    const slot = slots[place] ?? 0
    const score = scoreOf(lexicalWeight, lexical[slot] ?? 0, estimates.cosine[slot] ?? Number.NaN)
    scores[place] = score
    front.offer(score)
  }
  const some = new Int32Array(batch)
  let count = 0
  const take = (slot: number) => {
    some[count++] = slot
    if (count === batch) flush()
  }
  const flush = () => {
    bounds.take(some.subarray(0, count))
    count = 0
  }
  const edge = front.height
  for (let place = 0; place < slots.length; place++) {
    if ((scores[place] ?? 0) >= edge) take(slots[place] ?? 0)
  }
  flush()
  // What all others have to reach is then known.
  const least = bounds.bar.height - slack
  for (let place = 0; place < slots.length; place++) {
    const score = scores[place] ?? 0
    if (score < edge && score >= least) take(slots[place] ?? 0)
  }
  flush()
  return bounds.left()
}

/** Best first; ties by id. */
export const rank = (query: RankQuery, ranking: Ranking): ReadonlyArray<Ranked> => {
  const { ids, lexical, slots, vectors } = ranking
  const { lexicalWeight, vector } = query
  const best = new Best(query.topK, query.minScore)
  const offer = (slot: number) => {
    const words = lexical[slot] ?? 0
    const cosine = vector !== undefined && vectors.has(slot) ? vectors.cosine(slot, vector) : undefined
    if (words > 0 || cosine !== undefined) best.offer(ids[slot] ?? "", fuse(lexicalWeight, words, cosine))
  }
  if (vector === undefined || vectors.count === 0) for (const slot of slots) offer(slot)
  else for (const slot of promising(query, vector, ranking)) offer(slot)
  return best.all
}
