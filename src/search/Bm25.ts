/**
 * BM25 on an absolute scale: divided by what a chunk would score in which every query term, unseen ones included, occurs
 * without end. So 1 means the same in every query, and words that no chunk has pull all scores down.
 * `length` of a chunk is the number of term occurrences in its tsvector.
 */
import type { QueryForm } from "./Query.ts"
import { maxFrequency } from "./Tokenizer.ts"

export const k1 = 1.2
export const b = 0.75

/** How telling a term is that `chunks` of the agent's `total` contain; total 0 is not asked. */
export const idf = (total: number, chunks: number): number =>
  Math.log(1 + (total - chunks + 0.5) / (chunks + 0.5))

/** What one term adds for `frequency` occurrences, per unit of idf: 0 to k1 + 1. */
const saturation = (frequency: number, length: number, averageLength: number): number =>
  (frequency * (k1 + 1)) / (frequency + k1 * (1 - b + (b * length) / averageLength))

/** Room for one posting's frequency beside its slot in a small integer. */
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

  /** Adds the next slot; call {@link count} for each of its terms. */
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

  /** Drops the slots for which `moved` says −1 and renumbers the others, in their order. */
  retain(moved: Int32Array): void {
    const keep = (list: ReadonlyArray<number>) => {
      const kept: Array<number> = []
      for (const posting of list) {
        const slot = moved[posting >> frequencyBits] ?? -1
        if (slot >= 0) kept.push((slot << frequencyBits) | (posting & maxFrequency))
      }
      return kept
    }
    for (const [term, list] of this.#lists) {
      const kept = keep(list)
      this.#postings += kept.length - list.length
      if (kept.length === 0) this.#lists.delete(term)
      else this.#lists.set(term, kept)
    }
    this.#lengths = this.#lengths.filter((_, slot) => (moved[slot] ?? -1) >= 0)
    this.#lengthSum = this.#lengths.reduce((sum, length) => sum + length, 0)
  }

  /** The lexical score of every slot, 0..1: that of the form of the query which it answers best. */
  scores(forms: ReadonlyArray<QueryForm>): Float64Array {
    const best = new Float64Array(this.size)
    for (const form of forms) {
      const scores = this.#scoresOf(form)
      for (let slot = 0; slot < best.length; slot++) best[slot] = Math.max(best[slot] ?? 0, scores[slot] ?? 0)
    }
    return best
  }

  #scoresOf(form: QueryForm): Float64Array {
    const total = this.size
    const scores = new Float64Array(total)
    const average = this.#lengthSum / total
    let maxScore = 0
    for (const [term, occurrences] of form) {
      const list = this.#lists.get(term) ?? []
      const weight = occurrences * idf(total, list.length)
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
