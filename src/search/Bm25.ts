/**
 * BM25 on an absolute scale. The score is divided by the limit that a chunk with every query term, unknown terms
 * included, would approach with unlimited occurrences. So 1 means the same in every query, and terms that no chunk
 * contains lower all scores. `length` of a chunk is the number of term occurrences in its tsvector.
 */
import { isLong, type QueryForm, type QueryWords } from "./Query.ts"
import { maxFrequency } from "./Tokenizer.ts"

export const k1 = 1.2
export const b = 0.75

/** Inverse document frequency of a term that `chunks` of the agent's `total` chunks contain. `total` must not be 0. */
const idf = (total: number, chunks: number): number => Math.log(1 + (total - chunks + 0.5) / (chunks + 0.5))

/** Exponent of the inverse document frequency in long queries: rare terms count more than in BM25 (docs/retrieval.md). */
const longIdfExponent = 1.3

/** The weight of a term in a query, by the number of chunks that contain it. `total` must not be 0. */
export const termWeight = (query: QueryWords, total: number, chunks: number): number =>
  isLong(query) ? idf(total, chunks) ** longIdfExponent : idf(total, chunks)

/** The score that one term adds for `frequency` occurrences, per unit of idf: 0 to k1 + 1. */
const saturation = (frequency: number, length: number, averageLength: number): number =>
  (frequency * (k1 + 1)) / (frequency + k1 * (1 - b + (b * length) / averageLength))

/** Postings that one step of {@link Postings.retain} renumbers: a fraction of a millisecond. */
const postingsPerStep = 5_000

/** Bits of the frequency of a posting, which shares a small integer with its slot. */
const frequencyBits = 8

/** An inverted index over numbered slots, 0 to `size` − 1. */
export class Postings {
  readonly #lists = new Map<string, Array<number>>()
  #lengths: Array<number> = []
  #lengthSum = 0
  #postings = 0

  get size(): number {
    return this.#lengths.length
  }

  /** Approximate memory, in bytes. */
  get bytes(): number {
    return this.#postings * 10 + this.#lists.size * 120 + this.#lengths.length * 8
  }

  /** Adds the next slot. Call {@link count} for each of its terms. */
  add(length: number): void {
    this.#lengths.push(length)
    this.#lengthSum += length
  }

  /** Counts a term of the slot added last, once for each distinct term. */
  count(term: string, frequency: number): void {
    const posting = ((this.#lengths.length - 1) << frequencyBits) | Math.min(frequency, maxFrequency)
    const list = this.#lists.get(term)
    if (list === undefined) this.#lists.set(term, [posting])
    else list.push(posting)
    this.#postings++
  }

  /**
   * Removes the slots for which `moved` is −1 and renumbers the others, in their order. Nothing may use the postings
   * before the last step.
   */
  *retain(moved: Int32Array): Generator<void, void> {
    const renumber = (list: ReadonlyArray<number>) => {
      const kept: Array<number> = []
      for (const posting of list) {
        const slot = moved[posting >> frequencyBits] ?? -1
        if (slot >= 0) kept.push((slot << frequencyBits) | (posting & maxFrequency))
      }
      return kept
    }
    let work = 0
    for (const [term, list] of this.#lists) {
      work += list.length
      if (work > postingsPerStep) {
        yield
        work = 0
      }
      const kept = renumber(list)
      this.#postings += kept.length - list.length
      if (kept.length === 0) this.#lists.delete(term)
      else this.#lists.set(term, kept)
    }
    this.#lengths = this.#lengths.filter((_, slot) => (moved[slot] ?? -1) >= 0)
    this.#lengthSum = this.#lengths.reduce((sum, length) => sum + length, 0)
  }

  /** The lexical score of every slot, 0..1: the score of the query form that it matches best. */
  scores(query: QueryWords): Float64Array {
    const best = new Float64Array(this.size)
    for (const form of query.forms) {
      const scores = this.#scoresOf(query, form)
      for (let slot = 0; slot < best.length; slot++) best[slot] = Math.max(best[slot] ?? 0, scores[slot] ?? 0)
    }
    return best
  }

  #scoresOf(query: QueryWords, form: QueryForm): Float64Array {
    const total = this.size
    const scores = new Float64Array(total)
    const average = this.#lengthSum / total
    let maxScore = 0
    for (const [term, occurrences] of form) {
      const list = this.#lists.get(term) ?? []
      const weight = occurrences * termWeight(query, total, list.length)
      maxScore += weight * (k1 + 1)
      for (const posting of list) {
        const slot = posting >> frequencyBits
        const part = weight * saturation(posting & maxFrequency, this.#lengths[slot] ?? 0, average)
        scores[slot] = (scores[slot] ?? 0) + part
      }
    }
    if (maxScore > 0) for (let slot = 0; slot < total; slot++) scores[slot] = (scores[slot] ?? 0) / maxScore
    return scores
  }
}
