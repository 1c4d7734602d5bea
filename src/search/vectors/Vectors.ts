/**
 * Unit vectors in numbered slots, with two quantizations of each: {@link BinaryCodes} to estimate many cosines,
 * {@link ByteCodes} to bound some.
 */
import { decodeInto } from "../../domain/knowledge/StoredVector.ts"
import { BinaryCodes, type Estimates } from "./BinaryCodes.ts"
import { type Bounds, ByteCodes, type QuantizedQuery } from "./ByteCodes.ts"

/** Growth factor when more room is needed. */
const growthFactor = 1.3

/** Slots that one step of {@link Vectors.retain} moves: a fraction of a millisecond. */
const slotsPerStep = 50

/** Number of vectors up to which {@link Vectors.spread} is exact. Beyond it, a sample is used. */
const maxExactSpread = 4_000
const spreadSample = 20_000

export class Vectors {
  readonly dimensions: number
  readonly #binary: BinaryCodes
  readonly #bytes: ByteCodes
  #floats = new Float32Array(0)
  /** Buffer for one vector. */
  readonly #decoded: Float32Array
  /** By slot: 1 where there is a vector. */
  #has = new Uint8Array(0)
  #count = 0
  #expected = 0

  constructor(dimensions: number) {
    this.dimensions = dimensions
    this.#decoded = new Float32Array(dimensions)
    this.#binary = new BinaryCodes(dimensions)
    this.#bytes = new ByteCodes(dimensions)
  }

  /** Slots that have a vector. */
  get count(): number {
    return this.#count
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#floats.byteLength + this.#has.byteLength + this.#binary.bytes + this.#bytes.bytes
  }

  /** Announces slots 0 to `slots` − 1. Memory is allocated with the first vector. */
  expect(slots: number): void {
    this.#expected = Math.max(this.#expected, slots)
  }

  #reserve(slots: number): void {
    if (slots <= this.#has.length) return
    const capacity = Math.max(slots, this.#expected, Math.ceil(this.#has.length * growthFactor))
    const floats = new Float32Array(capacity * this.dimensions)
    const has = new Uint8Array(capacity)
    floats.set(this.#floats)
    has.set(this.#has)
    this.#floats = floats
    this.#has = has
    this.#binary.reserve(capacity)
    this.#bytes.reserve(capacity)
  }

  has(slot: number): boolean {
    return this.#has[slot] === 1
  }

  /** Sets the vector of a slot from its stored bytes. A vector of another length is ignored. */
  set(slot: number, bytes: Uint8Array): void {
    const { dimensions } = this
    if (dimensions === 0 || !decodeInto(bytes, this.#decoded)) return
    this.#reserve(slot + 1)
    this.#floats.set(this.#decoded, slot * dimensions)
    this.#binary.set(slot, this.#floats, slot * dimensions, dimensions)
    this.#bytes.set(slot, this.#floats, slot * dimensions)
    if (this.#has[slot] === 0) this.#count++
    this.#has[slot] = 1
  }

  /**
   * Renumbers slots: `moved` is the new slot of each, never a higher one, or −1 to remove it. Nothing may use the vectors
   * before the last step.
   */
  *retain(moved: Int32Array): Generator<void, void> {
    const { dimensions } = this
    let count = 0
    let end = 0
    for (const [slot, to] of moved.entries()) {
      if (slot % slotsPerStep === slotsPerStep - 1) yield
      if (to < 0) continue
      end = to + 1
      const has = this.#has[slot] ?? 0
      this.#has[to] = has
      if (has === 0) {
        this.#binary.remove(to)
        continue
      }
      count++
      this.#floats.copyWithin(to * dimensions, slot * dimensions, (slot + 1) * dimensions)
      this.#binary.move(slot, to)
      this.#bytes.move(slot, to)
    }
    this.#has.fill(0, end)
    this.#binary.truncate(end)
    this.#bytes.truncate(end)
    this.#count = count
  }

  /** The exact cosine of a slot that has a vector. */
  cosine(slot: number, query: Float32Array): number {
    const floats = this.#floats
    const { dimensions } = this
    const from = slot * dimensions
    // Four independent sums, because each addition would wait for the one before.
    let one = 0
    let two = 0
    let three = 0
    let four = 0
    let place = 0
    for (; place + 3 < dimensions; place += 4) {
      one += (floats[from + place] ?? 0) * (query[place] ?? 0)
      two += (floats[from + place + 1] ?? 0) * (query[place + 1] ?? 0)
      three += (floats[from + place + 2] ?? 0) * (query[place + 2] ?? 0)
      four += (floats[from + place + 3] ?? 0) * (query[place + 3] ?? 0)
    }
    for (; place < dimensions; place++) one += (floats[from + place] ?? 0) * (query[place] ?? 0)
    return one + two + three + four
  }

  /** Estimates of the cosines of slots 0 to `slots` − 1. */
  estimates(query: Float32Array, slots: number): Estimates {
    return this.#binary.estimates(query, slots)
  }

  /** The mean and standard deviation of the query's cosines over the slots that have a vector. */
  spread(query: Float32Array): { readonly mean: number; readonly deviation: number } {
    const step = Math.max(1, Math.floor(this.#count / spreadSample))
    const known: Array<number> = []
    let seen = 0
    for (let slot = 0; slot < this.#has.length; slot++) {
      if (this.#has[slot] === 1 && seen++ % step === 0) known.push(slot)
    }
    const cosine =
      known.length <= maxExactSpread
        ? known.map((slot) => this.cosine(slot, query))
        : this.bounds(this.quantizeQuery(query), Int32Array.from(known)).cosine
    let sum = 0
    let squares = 0
    for (const value of cosine) {
      sum += value
      squares += value * value
    }
    const count = Math.max(1, known.length)
    const mean = sum / count
    return { mean, deviation: Math.sqrt(Math.max(0, squares / count - mean * mean)) }
  }

  /** The query as {@link bounds} takes it. */
  quantizeQuery(query: Float32Array): QuantizedQuery {
    return this.#bytes.quantizeQuery(query)
  }

  /** Bounds of the cosines of `slots`. */
  bounds(query: QuantizedQuery, slots: Int32Array): Bounds {
    return this.#bytes.bounds(query, slots, this.#has)
  }
}
