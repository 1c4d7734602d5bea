/**
 * Which chunks are the best. Every cosine is known within narrow bounds before any is computed exactly, which is then done
 * for those alone that the bounds leave in question; of very many chunks only those have bounds that signs and words
 * promise something of.
 */
import { Best, fuse, type Ranked } from "../../search/Fusion.ts"
import type { Vectors } from "../../search/Vectors.ts"

/** Up to this many chunks all cosines are bounded; beyond, those of the most promising. */
const exhaustive = 8_192
/** Most promising chunks whose cosines are always bounded. */
const leastBounded = 512
/** Most chunks whose cosines are bounded, however close their estimates lie. */
const mostBounded = 8_192
/** Chunks that are bounded together. */
const batch = 512
/** How far from the exact cosine an estimate may be: about four standard deviations, more for fewer signs. */
const slackOf = (dimensions: number): number => Math.max(0.2, 6 / Math.sqrt(dimensions))
/** Estimated scores are sorted into this many classes. */
const classes = 2_048

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
  const prepared = vectors.prepare(vector)
  const bar = new Bar(topK, minScore)
  const slots: Array<number> = []
  const highest: Array<number> = []
  return {
    bar,
    take: (some: Int32Array) => {
      const { cosine, margin } = vectors.near(prepared, some)
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

/** `slots` by descending class of their estimated score: a counting sort, linear in their number. */
const byEstimate = ({ lexical, slots }: Ranking, estimates: Float64Array, lexicalWeight: number) => {
  const classOf = new Uint16Array(lexical.length)
  const starts = new Int32Array(classes + 2)
  for (const slot of slots) {
    const score = scoreOf(lexicalWeight, lexical[slot] ?? 0, estimates[slot] ?? Number.NaN)
    const kind = Math.min(classes, Math.floor(score * classes))
    classOf[slot] = kind
    starts[classes - kind + 1] = (starts[classes - kind + 1] ?? 0) + 1
  }
  for (let kind = 1; kind < starts.length; kind++)
    starts[kind] = (starts[kind] ?? 0) + (starts[kind - 1] ?? 0)
  const ordered = new Int32Array(slots.length)
  for (const slot of slots) {
    const kind = classes - (classOf[slot] ?? 0)
    const place = starts[kind] ?? 0
    ordered[place] = slot
    starts[kind] = place + 1
  }
  return { ordered, classOf } as const
}

/** The slots that may be among the best, by words and by meaning. */
const promising = (query: RankQuery, vector: Float32Array, ranking: Ranking): ReadonlyArray<number> => {
  const { lexical, slots, vectors } = ranking
  const bounds = makeBounds(query, vector, ranking)
  if (slots.length <= exhaustive) {
    bounds.take(slots)
    return bounds.left()
  }
  const { lexicalWeight } = query
  const { classOf, ordered } = byEstimate(ranking, vectors.estimates(vector, lexical.length), lexicalWeight)
  const slack = (1 - lexicalWeight) * slackOf(vectors.dimensions) + 1 / classes
  for (let from = 0; from < Math.min(ordered.length, mostBounded); from += batch) {
    // In the order of their estimates, until what is left cannot reach the best any more.
    const best = (classOf[ordered[from] ?? 0] ?? 0) / classes
    if (from >= leastBounded && best + slack < bounds.bar.height) break
    bounds.take(ordered.subarray(from, from + batch))
  }
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
