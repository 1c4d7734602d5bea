/**
 * Scalar quantization: one byte per number of each vector. The codes give the cosine with a query within known bounds,
 * in a quarter of the memory of the vectors.
 */
import { CodePages } from "./CodePages.ts"

const maxByte = 127
const maxInt16 = 32_767
const maxInt32 = 2_147_483_647

/** Error of floating-point sums, added to the bounds. */
const roundingMargin = 1e-6

/** A query as 16-bit numbers. */
export interface QuantizedQuery {
  readonly numbers: Int16Array
  /** The value of code 1. */
  readonly step: number
  /** The length of the vector of rounding errors. */
  readonly roundingError: number
}

/** The cosine of the n-th requested slot lies within `margin[n]` of `cosine[n]`, which is NaN without a vector. */
export interface Bounds {
  readonly cosine: Float64Array
  readonly margin: Float64Array
}

/** The largest absolute value, or 1 where all are zero. */
const peakOf = (vectors: Float32Array, from: number, length: number): number => {
  let peak = 0
  for (let place = from; place < from + length; place++) {
    const size = Math.abs(vectors[place] ?? 0)
    if (size > peak) peak = size
  }
  return peak === 0 ? 1 : peak
}

/**
 * Rounds as many numbers as `numbers` has, starting at `from`, to multiples of `step`. Returns the length of the
 * rounding error.
 */
const quantize = (
  vectors: Float32Array,
  from: number,
  step: number,
  numbers: Int8Array | Int16Array
): number => {
  let squares = 0
  for (let place = 0; place < numbers.length; place++) {
    const exact = vectors[from + place] ?? 0
    const rounded = Math.round(exact / step)
    numbers[place] = rounded
    squares += (exact - rounded * step) ** 2
  }
  return Math.sqrt(squares)
}

const enlarge = (numbers: Float64Array, length: number) => {
  const larger = new Float64Array(length)
  larger.set(numbers)
  return larger
}

export class ByteCodes {
  readonly #codes: CodePages
  /** By slot, as in {@link QuantizedQuery}. */
  #steps = new Float64Array(0)
  #roundingErrors = new Float64Array(0)
  /** Buffer for the codes of one vector. */
  readonly #numbers: Int8Array

  constructor(dimensions: number) {
    this.#codes = new CodePages(dimensions)
    this.#numbers = new Int8Array(dimensions)
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#codes.bytes + this.#steps.byteLength + this.#roundingErrors.byteLength
  }

  /** Makes room for slots 0 to `slots` − 1. */
  reserve(slots: number): void {
    this.#steps = enlarge(this.#steps, slots)
    this.#roundingErrors = enlarge(this.#roundingErrors, slots)
  }

  /** Encodes the numbers of `vectors`, starting at `from`, into a slot that has been reserved. */
  set(slot: number, vectors: Float32Array, from: number): void {
    const step = peakOf(vectors, from, this.#numbers.length) / maxByte
    this.#roundingErrors[slot] = quantize(vectors, from, step, this.#numbers)
    this.#steps[slot] = step
    this.#codes.grow(slot + 1)
    this.#codes.slot(slot).set(new Uint8Array(this.#numbers.buffer))
  }

  /** Moves the code to a slot that has had a vector. */
  move(from: number, to: number): void {
    this.#codes.move(from, to)
    this.#steps[to] = this.#steps[from] ?? 0
    this.#roundingErrors[to] = this.#roundingErrors[from] ?? 0
  }

  /** Drops the slots from `slots` on. Their memory stays reserved. */
  truncate(slots: number): void {
    this.#codes.shrink(slots)
  }

  /** The number of bits is chosen so that no sum of products with bytes overflows 32 bits. */
  quantizeQuery(query: Float32Array): QuantizedQuery {
    const largest = Math.min(maxInt16, Math.floor(maxInt32 / (maxByte * Math.max(1, query.length))))
    const step = peakOf(query, 0, query.length) / largest
    const numbers = new Int16Array(query.length)
    return { numbers, step, roundingError: quantize(query, 0, step, numbers) }
  }

  /** Bounds for those `slots` for which `has` is 1. */
  bounds({ roundingError, numbers, step }: QuantizedQuery, slots: Int32Array, has: Uint8Array): Bounds {
    const known = new Int32Array(slots.length)
    let count = 0
    for (const slot of slots) if (has[slot] === 1) known[count++] = slot
    const products = this.#codes.dotProducts(numbers, known.subarray(0, count))
    const cosine = new Float64Array(slots.length).fill(Number.NaN)
    const margin = new Float64Array(slots.length)
    let next = 0
    for (let place = 0; place < slots.length; place++) {
      const slot = slots[place] ?? 0
      if (has[slot] !== 1) continue
      const ownError = this.#roundingErrors[slot] ?? 0
      cosine[place] = (products[next++] ?? 0) * (this.#steps[slot] ?? 0) * step
      // The rounding error of each side, times the length of the other.
      margin[place] = ownError + roundingError * (1 + ownError) + roundingMargin
    }
    return { cosine, margin }
  }
}
