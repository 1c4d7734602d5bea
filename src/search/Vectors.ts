/**
 * Unit vectors in numbered slots, with two shorter forms of each: the signs of its numbers after a random
 * rotation, which estimate a cosine from an eighth of a byte for each number, and a byte for each number, which tells it
 * within known bounds.
 */
import { Codes, groupSize } from "./Codes.ts"
import { Rotation } from "./Rotation.ts"

/** What a byte of a vector holds at most. */
const largest = 127

/**
 * How far off an estimate may be, in standard deviations. By the rotation the error is as good as normal, whatever the
 * vectors are: of a thousand million chunks that belong to the best, one is missed.
 */
const deviations = 6
/** What a table holds at most, and what a sum of all may be. */
const mostHeld = 127
const mostSummed = 65_535

/** The largest of the numbers, without signs, and 1 where all are zero. */
const peakOf = (vector: Float32Array, from: number, dimensions: number): number => {
  let peak = 0
  for (let place = from; place < from + dimensions; place++) {
    const size = Math.abs(vector[place] ?? 0)
    if (size > peak) peak = size
  }
  return peak === 0 ? 1 : peak
}

/** A query as {@link Vectors.near} takes it. */
interface Prepared {
  readonly numbers: Int16Array
  /** What one step of a number is. */
  readonly step: number
  /** How long what was lost in rounding is. */
  readonly lost: number
}

/** Estimates of all slots' cosines, and how far off they may be. */
export interface Estimates {
  /** NaN where there is no vector. */
  readonly cosine: Float64Array
  readonly slack: number
}

/** Cosines of some slots: of slot `slots[n]` it lies within `margin[n]` of `cosine[n]`. */
export interface Near {
  readonly cosine: Float64Array
  readonly margin: Float64Array
}

const groupsOf = (slots: number): number => Math.ceil(slots / groupSize)

export class Vectors {
  readonly dimensions: number
  readonly #rotation: Rotation
  /** Bytes of a vector's signs; those of sixteen slots are a group. */
  readonly #pairs: number
  readonly #signs: Codes
  readonly #bytes: Codes
  /** Of one vector at a time. */
  readonly #numbers: Int8Array
  #floats = new Float32Array(0)
  #steps = new Float64Array(0)
  #lost = new Float64Array(0)
  /** What makes a cosine of the sum by signs. */
  #scales = new Float64Array(0)
  /** One deviation of the estimate that is furthest off. */
  #deviation = 0
  #present = new Uint8Array(0)
  #count = 0
  #expected = 0

  constructor(dimensions: number) {
    this.dimensions = dimensions
    this.#pairs = Math.ceil(dimensions / 8)
    this.#rotation = new Rotation(this.#pairs * 8)
    this.#numbers = new Int8Array(dimensions)
    this.#signs = new Codes(this.#pairs * groupSize)
    this.#bytes = new Codes(dimensions)
  }

  /** Slots that have a vector. */
  get count(): number {
    return this.#count
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#floats.byteLength + this.#signs.bytes + this.#bytes.bytes + this.#present.length * 25
  }

  /** Says that there will be slots 0 to `slots` − 1; room is made when the first vector comes. */
  expect(slots: number): void {
    this.#expected = Math.max(this.#expected, slots)
  }

  #grow(slots: number): void {
    if (slots <= this.#present.length) return
    const room = Math.max(slots, this.#expected, Math.ceil(this.#present.length * 1.3))
    const floats = new Float32Array(room * this.dimensions)
    const steps = new Float64Array(room)
    const lost = new Float64Array(room)
    const scales = new Float64Array(room)
    const present = new Uint8Array(room)
    floats.set(this.#floats)
    steps.set(this.#steps)
    lost.set(this.#lost)
    scales.set(this.#scales)
    present.set(this.#present)
    this.#floats = floats
    this.#steps = steps
    this.#lost = lost
    this.#scales = scales
    this.#present = present
  }

  has(slot: number): boolean {
    return this.#present[slot] === 1
  }

  /** Sets the vector of a slot from its floats in the machine's byte order; one of another length is passed over. */
  set(slot: number, bytes: Uint8Array): void {
    const size = this.dimensions * Float32Array.BYTES_PER_ELEMENT
    if (bytes.byteLength !== size || size === 0) return
    this.#grow(slot + 1)
    this.#signs.grow(groupsOf(slot + 1))
    this.#bytes.grow(slot + 1)
    new Uint8Array(this.#floats.buffer, slot * size, size).set(bytes)
    this.#sign(slot)
    this.#round(slot)
    if (this.#present[slot] === 0) this.#count++
    this.#present[slot] = 1
  }

  #sign(slot: number): void {
    const rotated = this.#rotation.of(this.#floats, slot * this.dimensions, this.dimensions)
    const group = this.#signs.at(Math.floor(slot / groupSize))
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
    // How much of the vector its signs tell, and what is left over, which the rotation spreads evenly.
    const told = squares === 0 ? 1 : (sum * sum) / (rotated.length * squares)
    const deviation = Math.sqrt((squares * (1 - Math.min(1, told))) / told / Math.max(1, rotated.length - 1))
    this.#deviation = Math.max(this.#deviation, deviation)
  }

  #move(slot: number, to: number): void {
    const own = this.#signs.at(Math.floor(slot / groupSize))
    const other = this.#signs.at(Math.floor(to / groupSize))
    for (let at = 0; at < own.length; at += groupSize) {
      other[at + (to % groupSize)] = own[at + (slot % groupSize)] ?? 0
    }
  }

  #round(slot: number): void {
    const from = slot * this.dimensions
    const step = peakOf(this.#floats, from, this.dimensions) / largest
    let lost = 0
    for (let place = 0; place < this.dimensions; place++) {
      const exact = this.#floats[from + place] ?? 0
      const rounded = Math.round(exact / step)
      this.#numbers[place] = rounded
      lost += (exact - rounded * step) ** 2
    }
    this.#bytes.set(slot, new Uint8Array(this.#numbers.buffer))
    this.#steps[slot] = step
    this.#lost[slot] = Math.sqrt(lost)
  }

  /** Renumbers slots: `moved` says where each goes, −1 for nowhere, never upward. */
  retain(moved: Int32Array): void {
    const { dimensions } = this
    let count = 0
    let end = 0
    for (const [slot, to] of moved.entries()) {
      if (to < 0) continue
      end = to + 1
      const present = this.#present[slot] ?? 0
      this.#present[to] = present
      if (present === 0) continue
      count++
      this.#floats.copyWithin(to * dimensions, slot * dimensions, (slot + 1) * dimensions)
      this.#steps[to] = this.#steps[slot] ?? 0
      this.#lost[to] = this.#lost[slot] ?? 0
      this.#scales[to] = this.#scales[slot] ?? 0
      this.#move(slot, to)
      this.#bytes.move(slot, to)
    }
    this.#present.fill(0, end)
    this.#signs.shrink(groupsOf(end))
    this.#bytes.shrink(end)
    this.#count = count
  }

  /** The exact cosine of a slot that has a vector. */
  cosine(slot: number, query: Float32Array): number {
    const floats = this.#floats
    const { dimensions } = this
    const from = slot * dimensions
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

  /**
   * For each four numbers of the rotated query, what they add up to with every choice of signs: `bytes` · `step` − `below`,
   * for all of them together.
   */
  #tables(query: Float32Array) {
    const rotated = this.#rotation.of(query, 0, query.length)
    const fours = this.#pairs * 2
    let peak = 0
    for (let at = 0; at < rotated.length; at += 4) {
      let size = 0
      for (let bit = 0; bit < 4; bit++) size += Math.abs(rotated[at + bit] ?? 0)
      if (size > peak) peak = size
    }
    const held = Math.min(mostHeld, Math.floor(mostSummed / Math.max(1, fours)))
    const step = peak === 0 ? 1 : (2 * peak) / held
    const bytes = new Uint8Array(fours * 16)
    const sums = new Float64Array(16)
    for (let four = 0; four < fours; four++) {
      let none = peak
      for (let bit = 0; bit < 4; bit++) none -= rotated[four * 4 + bit] ?? 0
      sums[0] = none
      for (let bit = 0; bit < 4; bit++) {
        const twice = 2 * (rotated[four * 4 + bit] ?? 0)
        for (let signs = 0; signs < 1 << bit; signs++) sums[signs + (1 << bit)] = (sums[signs] ?? 0) + twice
      }
      for (let signs = 0; signs < 16; signs++) bytes[four * 16 + signs] = (sums[signs] ?? 0) / step + 0.5
    }
    return { bytes, step, below: peak * fours, lost: step * Math.sqrt(fours / 12) } as const
  }

  /** Estimates of the cosines of slots 0 to `slots` − 1, from signs alone. */
  estimates(query: Float32Array, slots: number): Estimates {
    const cosine = new Float64Array(slots).fill(Number.NaN)
    const known = Math.min(slots, this.#present.length)
    const { below, bytes, lost, step } = this.#tables(query)
    const sums = this.#signs.sums(bytes, this.#pairs, Math.min(groupsOf(known), this.#signs.slots))
    let largestScale = 0
    for (let slot = 0; slot < known; slot++) {
      if (this.#present[slot] !== 1) continue
      const scale = this.#scales[slot] ?? 0
      if (scale > largestScale) largestScale = scale
      cosine[slot] = ((sums[slot] ?? 0) * step - below) * scale
    }
    return { cosine, slack: deviations * Math.hypot(this.#deviation, lost * largestScale) }
  }

  /** The query in numbers of 16 bits, so few of them that no sum of products overflows 32. */
  prepare(query: Float32Array): Prepared {
    const most = Math.min(32_767, Math.floor(2_147_483_647 / (largest * Math.max(1, this.dimensions))))
    const step = peakOf(query, 0, query.length) / most
    const numbers = new Int16Array(query.length)
    let lost = 0
    for (let place = 0; place < query.length; place++) {
      const exact = query[place] ?? 0
      const rounded = Math.round(exact / step)
      numbers[place] = rounded
      lost += (exact - rounded * step) ** 2
    }
    return { numbers, step, lost: Math.sqrt(lost) }
  }

  /** The cosines of `slots`, with how far off they may be; NaN where there is no vector. */
  near({ lost, numbers, step }: Prepared, slots: Int32Array): Near {
    const present = this.#present
    const known = new Int32Array(slots.length)
    let count = 0
    for (const slot of slots) if (present[slot] === 1) known[count++] = slot
    const dots = this.#bytes.dots(numbers, known.subarray(0, count))
    const cosine = new Float64Array(slots.length)
    const margin = new Float64Array(slots.length)
    let next = 0
    for (let place = 0; place < slots.length; place++) {
      const slot = slots[place] ?? 0
      if (present[slot] !== 1) {
        cosine[place] = Number.NaN
        continue
      }
      const own = this.#lost[slot] ?? 0
      cosine[place] = (dots[next++] ?? 0) * (this.#steps[slot] ?? 0) * step
      // What either lost, times how long the other is; a little more for the sums of floats.
      margin[place] = own + lost * (1 + own) + 1e-6
    }
    return { cosine, margin }
  }
}
