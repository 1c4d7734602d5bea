/**
 * A fixed random rotation: lengths and products stay as they are, and each number of a vector becomes a little of all of
 * them. Hadamard's transform between changes of sign, at the front and at the back in turns where the dimensions are no
 * power of two.
 */

const rounds = 4

/** Numbers from 0 to 1, the same in every process (Mulberry32). */
const random = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Hadamard's transform of the `size` numbers from `from` on, in place; `size` is a power of two. */
const transform = (numbers: Float32Array, from: number, size: number): void => {
  for (let half = 1; half < size; half *= 2) {
    for (let block = from; block < from + size; block += 2 * half) {
      for (let place = block; place < block + half; place++) {
        const one = numbers[place] ?? 0
        const other = numbers[place + half] ?? 0
        numbers[place] = one + other
        numbers[place + half] = one - other
      }
    }
  }
}

export class Rotation {
  readonly #size: number
  /** Signs of all rounds, with the scale that keeps lengths. */
  readonly #signs: Float32Array
  readonly #out: Float32Array

  /** Of vectors of `size` numbers. */
  constructor(size: number) {
    this.#size = size <= 0 ? 0 : 2 ** Math.floor(Math.log2(size))
    const scale = 1 / Math.sqrt(Math.max(1, this.#size))
    const next = random(size)
    this.#out = new Float32Array(size)
    this.#signs = new Float32Array(size * rounds)
    for (let round = 0; round < rounds; round++) {
      const from = this.#from(round)
      for (let place = 0; place < size; place++) {
        const within = place >= from && place < from + this.#size
        this.#signs[round * size + place] = (next() < 0.5 ? -1 : 1) * (within ? scale : 1)
      }
    }
  }

  #from(round: number): number {
    return round % 2 === 0 ? 0 : this.#out.length - this.#size
  }

  /** The `length` numbers of `vector` from `from` on, rotated; zeros where they are fewer. Valid until the next call. */
  of(vector: Float32Array, from: number, length: number): Float32Array {
    const out = this.#out
    out.fill(0, length)
    for (let place = 0; place < length; place++) out[place] = vector[from + place] ?? 0
    for (let round = 0; round < rounds; round++) {
      const signs = round * out.length
      for (let place = 0; place < out.length; place++) {
        out[place] = (out[place] ?? 0) * (this.#signs[signs + place] ?? 0)
      }
      transform(out, this.#from(round), this.#size)
    }
    return out
  }
}
