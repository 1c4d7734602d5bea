/**
 * Binary quantization: of each vector the signs of its numbers after a random rotation, one bit per number. The codes
 * estimate the cosine with a query in 1/32 of the memory of the vectors.
 */
import { CodePages, groupSize } from "./CodePages.ts"
import { RandomRotation } from "./RandomRotation.ts"

/**
 * Bound of the estimation error, in standard deviations. After the rotation the error is close to normally distributed
 * for any vectors: of 10⁹ chunks that belong to the best, one is missed.
 */
const maxDeviations = 6
/** Maximum value of a lookup table entry. A byte has to hold the sum of two. */
const maxEntry = 127
/** Maximum sum of all entries of a code: sums have 16 bits. */
const maxSum = 65_535

/** Estimates of the cosines of all slots, with their error bounds. */
export interface Estimates {
  /** NaN where there is no vector. */
  readonly cosine: Float64Array
  readonly slack: number
}

const groupsOf = (slots: number): number => Math.ceil(slots / groupSize)

export class BinaryCodes {
  readonly #rotation: RandomRotation
  /** Bytes of a code. Each half byte has a lookup table. */
  readonly #pairs: number
  /** Codes are stored in groups of sixteen, as {@link CodePages.lookupSums} needs them. */
  readonly #groups: CodePages
  /** By slot: the factor from the signed sum of a query's numbers to the cosine; NaN where there is no vector. */
  #scales = new Float64Array(0)
  /** The largest standard deviation of an estimate. */
  #deviation = 0

  constructor(dimensions: number) {
    this.#pairs = Math.ceil(dimensions / 8)
    this.#rotation = new RandomRotation(this.#pairs * 8)
    this.#groups = new CodePages(this.#pairs * groupSize)
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#groups.bytes + this.#scales.byteLength
  }

  /** Makes room for slots 0 to `slots` − 1. */
  reserve(slots: number): void {
    const scales = new Float64Array(slots).fill(Number.NaN)
    scales.set(this.#scales)
    this.#scales = scales
  }

  /** Encodes `length` numbers of `vectors`, starting at `from`, into a slot that has been reserved. */
  set(slot: number, vectors: Float32Array, from: number, length: number): void {
    const rotated = this.#rotation.rotate(vectors, from, length)
    this.#groups.grow(groupsOf(slot + 1))
    const group = this.#groups.slot(Math.floor(slot / groupSize))
    let sum = 0
    let squares = 0
    for (let pair = 0; pair < this.#pairs; pair++) {
      let bits = 0
      for (let bit = 0; bit < 8; bit++) {
        const number = rotated[pair * 8 + bit] ?? 0
        if (number > 0) bits |= 1 << bit
        sum += Math.abs(number)
        squares += number * number
      }
      group[pair * groupSize + (slot % groupSize)] = bits
    }
    this.#scales[slot] = sum === 0 ? 0 : squares / sum
    // The share of the vector's length that the signs keep. The rotation spreads the rest evenly.
    const cosineSquared = squares === 0 ? 1 : (sum * sum) / (rotated.length * squares)
    const deviation = Math.sqrt(
      (squares * (1 - Math.min(1, cosineSquared))) / cosineSquared / Math.max(1, rotated.length - 1)
    )
    this.#deviation = Math.max(this.#deviation, deviation)
  }

  /** Moves the code to a slot that has had a vector. */
  move(from: number, to: number): void {
    const source = this.#groups.slot(Math.floor(from / groupSize))
    const target = this.#groups.slot(Math.floor(to / groupSize))
    for (let at = 0; at < source.length; at += groupSize) {
      target[at + (to % groupSize)] = source[at + (from % groupSize)] ?? 0
    }
    this.#scales[to] = this.#scales[from] ?? Number.NaN
  }

  remove(slot: number): void {
    this.#scales[slot] = Number.NaN
  }

  /** Drops the slots from `slots` on. Their memory stays reserved. */
  truncate(slots: number): void {
    this.#scales.fill(Number.NaN, slots)
    this.#groups.shrink(groupsOf(slots))
  }

  /**
   * For each group of four numbers of the rotated query: their sum for every choice of signs. The sum of the entries
   * that a code chooses, times `step` minus `offset`, is the signed sum. `deviation` is the standard deviation of the
   * rounding error.
   */
  #tablesOf(query: Float32Array) {
    const rotated = this.#rotation.rotate(query, 0, query.length)
    const count = this.#pairs * 2
    /** The largest sum of four numbers. */
    let peak = 0
    for (let at = 0; at < rotated.length; at += 4) {
      let sum = 0
      for (let bit = 0; bit < 4; bit++) sum += Math.abs(rotated[at + bit] ?? 0)
      if (sum > peak) peak = sum
    }
    const entries = Math.min(maxEntry, Math.floor(maxSum / Math.max(1, count)))
    const step = peak === 0 ? 1 : (2 * peak) / entries
    const tables = new Uint8Array(count * 16)
    const sums = new Float64Array(16)
    for (let table = 0; table < count; table++) {
      let allNegative = peak
      for (let bit = 0; bit < 4; bit++) allNegative -= rotated[table * 4 + bit] ?? 0
      sums[0] = allNegative
      for (let bit = 0; bit < 4; bit++) {
        const twice = 2 * (rotated[table * 4 + bit] ?? 0)
        for (let signs = 0; signs < 1 << bit; signs++) sums[signs + (1 << bit)] = (sums[signs] ?? 0) + twice
      }
      for (let signs = 0; signs < 16; signs++) tables[table * 16 + signs] = (sums[signs] ?? 0) / step + 0.5
    }
    return { tables, step, offset: peak * count, deviation: step * Math.sqrt(count / 12) } as const
  }

  /** Estimates of the cosines of slots 0 to `slots` − 1. */
  estimates(query: Float32Array, slots: number): Estimates {
    const { deviation, offset, step, tables } = this.#tablesOf(query)
    const cosine = new Float64Array(slots).fill(Number.NaN)
    const known = Math.min(slots, this.#scales.length, this.#groups.slots * groupSize)
    const sums = this.#groups.lookupSums(tables, groupsOf(known))
    let largestScale = 0
    for (let slot = 0; slot < known; slot++) {
      const scale = this.#scales[slot] ?? Number.NaN
      if (scale > largestScale) largestScale = scale
      cosine[slot] = ((sums[slot] ?? 0) * step - offset) * scale
    }
    return { cosine, slack: maxDeviations * Math.hypot(this.#deviation, deviation * largestScale) }
  }
}
