/**
 * Codes of equal length in numbered slots, in the memory of the {@link makeKernel kernel}, which all of them share: pages
 * that nobody refers to any more are given to others.
 */
import { blocksEach, makeKernel } from "./Kernel.ts"

/** What a collection takes at a time: little enough for small ones. */
const pageBytes = 16_384
const blockBytes = 16
/** What the memory is counted in, how much it grows by at a time, and what that makes in pages. */
const unitBytes = 65_536
const growth = 16
const perUnit = unitBytes / pageBytes
/** Queries and results have the first unit: tables or 16-bit numbers, places, numbers. Tables reach over the places. */
const queryAt = 0
const placesAt = 16_384
const outAt = 40_960
/** Codes that one call compares at most. */
const most = 4_096
/** Codes of a group, whose bytes are interleaved, and what a group's sums take. */
export const groupSize = 16
const sumsBytes = 32
const mostGroups = (unitBytes - outAt) / sumsBytes

const kernel = makeKernel()
const free: Array<number> = []
const view = () => ({
  bytes: new Uint8Array(kernel.memory.buffer),
  shorts: new Int16Array(kernel.memory.buffer),
  words: new Uint16Array(kernel.memory.buffer),
  ints: new Int32Array(kernel.memory.buffer)
})
let memory = view()

const takePage = (): number => {
  const before = free.pop()
  if (before !== undefined) return before
  const first = kernel.memory.grow(growth) * perUnit
  // What was there has gone from under the views.
  memory = view()
  for (let page = first + growth * perUnit - 1; page > first; page--) free.push(page)
  return first
}

const abandoned = new FinalizationRegistry<ReadonlyArray<number>>((pages) => {
  for (const page of pages) free.push(page)
})

export class Codes {
  readonly #pages: Array<number> = []
  readonly #blocks: number
  readonly #stride: number
  readonly #perPage: number

  /** Codes of `length` bytes, at most 8,192; what is missing to a whole block is zero. */
  constructor(length: number) {
    this.#blocks = Math.ceil(length / blockBytes / blocksEach) * blocksEach
    this.#stride = this.#blocks * blockBytes
    this.#perPage = this.#stride === 0 ? 0 : Math.floor(pageBytes / this.#stride)
    abandoned.register(this, this.#pages)
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#pages.length * pageBytes
  }

  /** How many there is room for. */
  get slots(): number {
    return this.#pages.length * this.#perPage
  }

  #at(slot: number): number {
    const page = this.#pages[Math.floor(slot / this.#perPage)] ?? 0
    return page * pageBytes + (slot % this.#perPage) * this.#stride
  }

  /** Makes room for slots 0 to `slots` − 1, zero where nothing was. */
  grow(slots: number): void {
    while (this.slots < slots) {
      const page = takePage()
      memory.bytes.fill(0, page * pageBytes, (page + 1) * pageBytes)
      this.#pages.push(page)
    }
  }

  /** Gives what is behind the first `slots` to others. */
  shrink(slots: number): void {
    while (this.#pages.length > 0 && (this.#pages.length - 1) * this.#perPage >= slots) {
      free.push(this.#pages.pop() ?? 0)
    }
  }

  set(slot: number, code: Uint8Array): void {
    memory.bytes.set(code, this.#at(slot))
  }

  move(from: number, to: number): void {
    const at = this.#at(from)
    memory.bytes.copyWithin(this.#at(to), at, at + this.#stride)
  }

  /** The bytes of a slot, to be changed; valid until more room is made. */
  at(slot: number): Uint8Array {
    const at = this.#at(slot)
    return memory.bytes.subarray(at, at + this.#stride)
  }

  /**
   * Where a slot is a group of sixteen codes of `pairs` bytes: for each of its codes, in slots 0 to `slots` − 1, the sum of
   * what its half bytes find in `tables`, of which each has sixteen bytes.
   */
  sums(tables: Uint8Array, pairs: number, slots: number): Uint16Array {
    const found = new Uint16Array(slots * groupSize)
    memory.bytes.set(tables, queryAt)
    const { words } = memory
    for (let from = 0; from < slots;) {
      const count = Math.min(this.#perPage - (from % this.#perPage), slots - from, mostGroups)
      kernel.sums(queryAt, this.#at(from), count, pairs, outAt)
      found.set(words.subarray(outAt / 2, outAt / 2 + count * groupSize), from * groupSize)
      from += count
    }
    return found
  }

  /** The products of `query` with the codes, as signed bytes, of `slots`. */
  dots(query: Int16Array, slots: Int32Array): Int32Array {
    const found = new Int32Array(slots.length)
    const { ints, shorts } = memory
    shorts.fill(0, queryAt / 2, queryAt / 2 + this.#stride).set(query, queryAt / 2)
    for (let from = 0; from < slots.length; from += most) {
      const count = Math.min(most, slots.length - from)
      for (let place = 0; place < count; place++) {
        ints[placesAt / 4 + place] = this.#at(slots[from + place] ?? 0)
      }
      kernel.dots(queryAt, placesAt, count, this.#blocks, outAt)
      found.set(ints.subarray(outAt / 4, outAt / 4 + count), from)
    }
    return found
  }
}
