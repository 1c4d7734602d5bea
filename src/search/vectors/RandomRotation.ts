/**
 * A fixed random rotation of vectors. It keeps lengths and dot products, and spreads each number over all of them, so
 * that quantization loses about the same for every vector. It alternates Hadamard transforms and changes of sign. Where
 * the number of dimensions is not a power of two, transforms are applied to the front and to the back in turn.
 */

const rotationRounds = 4

/** Pseudo-random numbers from 0 to 1, the same in every process (Mulberry32). */
const pseudoRandom = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

/**
 * The Hadamard transform of `size` numbers, starting at `from`, in place. `size` is a power of two. Two levels are done
 * at a time, with half the reads and writes, which takes 0.4 of the time.
 */
const hadamard = (numbers: Float32Array, from: number, size: number): void => {
  const end = from + size
  let half = 1
  for (; half * 4 <= size; half *= 4) {
    for (let block = from; block < end; block += 4 * half) {
      for (let place = block; place < block + half; place++) {
        const first = numbers[place] ?? 0
        const second = numbers[place + half] ?? 0
        const third = numbers[place + 2 * half] ?? 0
        const fourth = numbers[place + 3 * half] ?? 0
        numbers[place] = first + second + (third + fourth)
        numbers[place + half] = first - second + (third - fourth)
        numbers[place + 2 * half] = first + second - (third + fourth)
        numbers[place + 3 * half] = first - second - (third - fourth)
      }
    }
  }
  if (half === size) return
  // Where the number of levels is odd, one is left.
  for (let place = from; place < from + half; place++) {
    const one = numbers[place] ?? 0
    const other = numbers[place + half] ?? 0
    numbers[place] = one + other
    numbers[place + half] = one - other
  }
}

export class RandomRotation {
  /** Numbers of one transform: the largest power of two that fits into the dimensions. */
  readonly #size: number
  /** The changes of sign of all rounds, multiplied by the scale that keeps lengths. */
  readonly #signs: Float32Array
  readonly #rotated: Float32Array

  constructor(dimensions: number) {
    this.#size = dimensions <= 0 ? 0 : 2 ** Math.floor(Math.log2(dimensions))
    const scale = 1 / Math.sqrt(Math.max(1, this.#size))
    const next = pseudoRandom(dimensions)
    this.#rotated = new Float32Array(dimensions)
    this.#signs = new Float32Array(dimensions * rotationRounds)
    for (let round = 0; round < rotationRounds; round++) {
      const from = this.#from(round)
      for (let place = 0; place < dimensions; place++) {
        const within = place >= from && place < from + this.#size
        this.#signs[round * dimensions + place] = (next() < 0.5 ? -1 : 1) * (within ? scale : 1)
      }
    }
  }

  #from(round: number): number {
    return round % 2 === 0 ? 0 : this.#rotated.length - this.#size
  }

  /**
   * Rotates `length` numbers of `vectors`, starting at `from`; missing dimensions are zero. Valid until the next call.
   */
  rotate(vectors: Float32Array, from: number, length: number): Float32Array {
    const rotated = this.#rotated
    rotated.fill(0, length)
    for (let place = 0; place < length; place++) rotated[place] = vectors[from + place] ?? 0
    for (let round = 0; round < rotationRounds; round++) {
      const signs = round * rotated.length
      for (let place = 0; place < rotated.length; place++) {
        rotated[place] = (rotated[place] ?? 0) * (this.#signs[signs + place] ?? 0)
      }
      hadamard(rotated, this.#from(round), this.#size)
    }
    return rotated
  }
}
