/**
 * Unit vectors in numbered slots, with their signs as bits: the share of equal signs estimates a cosine in a sixteenth of
 * the time, so that only promising slots need the exact one (findings 3).
 */

const popcount = (word: number): number => {
  let bits = word - ((word >>> 1) & 0x55555555)
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333)
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

const writeSigns = (
  vector: Float32Array,
  from: number,
  dimensions: number,
  bits: Int32Array,
  at: number
): void => {
  for (let start = 0; start < dimensions; start += 32) {
    let word = 0
    for (let bit = 0; bit < 32 && start + bit < dimensions; bit++) {
      if ((vector[from + start + bit] ?? 0) > 0) word |= 1 << bit
    }
    bits[at + start / 32] = word
  }
}

export class Vectors {
  readonly dimensions: number
  readonly #words: number
  #floats = new Float32Array(0)
  #bits = new Int32Array(0)
  #present = new Uint8Array(0)
  #count = 0
  #expected = 0

  constructor(dimensions: number) {
    this.dimensions = dimensions
    this.#words = Math.ceil(dimensions / 32)
  }

  /** Slots that have a vector. */
  get count(): number {
    return this.#count
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#floats.byteLength + this.#bits.byteLength + this.#present.byteLength
  }

  /** Says that there will be slots 0 to `slots` − 1; room is made when the first vector comes. */
  expect(slots: number): void {
    this.#expected = Math.max(this.#expected, slots)
  }

  #grow(slots: number): void {
    if (slots <= this.#present.length) return
    const room = Math.max(slots, this.#expected, Math.ceil(this.#present.length * 1.3))
    const floats = new Float32Array(room * this.dimensions)
    const bits = new Int32Array(room * this.#words)
    const present = new Uint8Array(room)
    floats.set(this.#floats)
    bits.set(this.#bits)
    present.set(this.#present)
    this.#floats = floats
    this.#bits = bits
    this.#present = present
  }

  has(slot: number): boolean {
    return this.#present[slot] === 1
  }

  /** Sets the vector of a slot from its floats in the machine's byte order; one of another length is passed over. */
  set(slot: number, bytes: Uint8Array): void {
    const size = this.dimensions * Float32Array.BYTES_PER_ELEMENT
    if (bytes.byteLength !== size) return
    this.#grow(slot + 1)
    new Uint8Array(this.#floats.buffer, slot * size, size).set(bytes)
    writeSigns(this.#floats, slot * this.dimensions, this.dimensions, this.#bits, slot * this.#words)
    if (this.#present[slot] === 0) this.#count++
    this.#present[slot] = 1
  }

  /** Renumbers slots: `moved` says where each goes, −1 for nowhere, never upward. */
  retain(moved: Int32Array): void {
    let count = 0
    let end = 0
    for (const [slot, to] of moved.entries()) {
      if (to < 0) continue
      const { dimensions } = this
      const words = this.#words
      this.#floats.copyWithin(to * dimensions, slot * dimensions, (slot + 1) * dimensions)
      this.#bits.copyWithin(to * words, slot * words, (slot + 1) * words)
      const present = this.#present[slot] ?? 0
      this.#present[to] = present
      count += present
      end = to + 1
    }
    this.#present.fill(0, end)
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

  /** Estimates of the cosines of slots 0 to `slots` − 1, from signs alone; NaN where there is no vector. */
  estimates(query: Float32Array, slots: number): Float64Array {
    const { dimensions } = this
    const words = this.#words
    const signs = new Int32Array(words)
    writeSigns(query, 0, dimensions, signs, 0)
    const cosines = Float64Array.from({ length: dimensions + 1 }, (_, unequal) =>
      Math.cos((Math.PI * unequal) / dimensions)
    )
    const found = new Float64Array(slots).fill(Number.NaN)
    const bits = this.#bits
    for (let slot = 0; slot < slots; slot++) {
      if (this.#present[slot] !== 1) continue
      let unequal = 0
      const from = slot * words
      for (let word = 0; word < words; word++)
        unequal += popcount((bits[from + word] ?? 0) ^ (signs[word] ?? 0))
      found[slot] = cosines[unequal] ?? 0
    }
    return found
  }
}
