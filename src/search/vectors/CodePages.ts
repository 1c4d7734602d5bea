/**
 * Quantized vectors ("codes") of equal length in numbered slots. All of them share the memory of one SIMD module, in pages:
 * those of a collection that is garbage are given to others.
 */
import { instantiate } from "./Simd.ts"

/** What a collection takes at a time: little enough for small ones. */
const pageBytes = 16_384
/** The numbers of a block of dot products, and so its bytes. */
const blockBytes = 64
/** What WebAssembly counts memory in, and how much of it is taken at a time. */
const wasmPageBytes = 65_536
const wasmPagesTaken = 16
const pagesPerWasmPage = wasmPageBytes / pageBytes
/** The first page of the memory is for calls: query (tables or numbers), addresses of codes, results. Tables reach over the addresses. */
const queryAt = 0
const addressesAt = 16_384
const resultsAt = 40_960
/** Codes that one call multiplies at most. */
const maxProducts = 4_096
/** Codes of a group of {@link CodePages.lookupSums}, the bytes of its sums, and groups that one call takes at most. */
export const groupSize = 16
const groupSumsBytes = 32
/** The two lookup tables of a byte of a code. */
const pairTablesBytes = 32
const maxGroups = (wasmPageBytes - resultsAt) / groupSumsBytes

const simd = instantiate()
const freePages: Array<number> = []
const viewsOfMemory = () => ({
  bytes: new Uint8Array(simd.memory.buffer),
  int16: new Int16Array(simd.memory.buffer),
  uint16: new Uint16Array(simd.memory.buffer),
  int32: new Int32Array(simd.memory.buffer)
})
let views = viewsOfMemory()

const takePage = (): number => {
  const free = freePages.pop()
  if (free !== undefined) return free
  const first = simd.memory.grow(wasmPagesTaken) * pagesPerWasmPage
  // Growing detaches the buffer of the old ones.
  views = viewsOfMemory()
  for (let page = first + wasmPagesTaken * pagesPerWasmPage - 1; page > first; page--) freePages.push(page)
  return first
}

const garbage = new FinalizationRegistry<ReadonlyArray<number>>((pages) => {
  for (const page of pages) freePages.push(page)
})

export class CodePages {
  readonly #pages: Array<number> = []
  readonly #blocks: number
  readonly #slotBytes: number
  readonly #slotsPerPage: number

  /** For codes of `length` bytes, at most 8,192; what is missing to a whole block is zero. */
  constructor(length: number) {
    this.#blocks = Math.ceil(length / blockBytes)
    this.#slotBytes = this.#blocks * blockBytes
    this.#slotsPerPage = this.#slotBytes === 0 ? 0 : Math.floor(pageBytes / this.#slotBytes)
    garbage.register(this, this.#pages)
  }

  /** Memory, in bytes. */
  get bytes(): number {
    return this.#pages.length * pageBytes
  }

  /** The capacity of the page. */
  get slots(): number {
    return this.#pages.length * this.#slotsPerPage
  }

  #addressOf(slot: number): number {
    const page = this.#pages[Math.floor(slot / this.#slotsPerPage)] ?? 0
    return page * pageBytes + (slot % this.#slotsPerPage) * this.#slotBytes
  }

  /** Makes room for slots 0 to `slots` − 1, zero where nothing was. */
  grow(slots: number): void {
    while (this.slots < slots) {
      const page = takePage()
      views.bytes.fill(0, page * pageBytes, (page + 1) * pageBytes)
      this.#pages.push(page)
    }
  }

  /** Gives the pages behind the first `slots` to others. */
  shrink(slots: number): void {
    while (this.#pages.length > 0 && (this.#pages.length - 1) * this.#slotsPerPage >= slots) {
      freePages.push(this.#pages.pop() ?? 0)
    }
  }

  /** The bytes of a slot, to be read and changed; valid until more room is made, by any collection. */
  slot(slot: number): Uint8Array {
    const address = this.#addressOf(slot)
    return views.bytes.subarray(address, address + this.#slotBytes)
  }

  move(from: number, to: number): void {
    this.slot(to).set(this.slot(from))
  }

  /**
   * Where a slot is a group of sixteen interleaved codes: for each code, in slots 0 to `slots` − 1, the sum of what its half
   * bytes find in `tables`, which has sixteen bytes for each of them.
   */
  lookupSums(tables: Uint8Array, slots: number): Uint16Array {
    const sums = new Uint16Array(slots * groupSize)
    const { bytes, uint16 } = views
    // What is missing to a whole block finds zeros.
    const pairs = this.#slotBytes / groupSize
    bytes.fill(0, queryAt, queryAt + pairs * pairTablesBytes).set(tables, queryAt)
    for (let from = 0; from < slots;) {
      const left = this.#slotsPerPage - (from % this.#slotsPerPage)
      const count = Math.min(left, slots - from, maxGroups)
      simd.lookupSums(queryAt, this.#addressOf(from), count, pairs, resultsAt)
      sums.set(uint16.subarray(resultsAt / 2, resultsAt / 2 + count * groupSize), from * groupSize)
      from += count
    }
    return sums
  }

  /** The dot products of `query` with the codes of `slots`, as signed bytes. */
  dotProducts(query: Int16Array, slots: Int32Array): Int32Array {
    const products = new Int32Array(slots.length)
    const { int16, int32 } = views
    int16.fill(0, queryAt / 2, queryAt / 2 + this.#slotBytes).set(query, queryAt / 2)
    for (let from = 0; from < slots.length; from += maxProducts) {
      const count = Math.min(maxProducts, slots.length - from)
      for (let place = 0; place < count; place++) {
        int32[addressesAt / 4 + place] = this.#addressOf(slots[from + place] ?? 0)
      }
      simd.dotProducts(queryAt, addressesAt, count, this.#blocks, resultsAt)
      products.set(int32.subarray(resultsAt / 4, resultsAt / 4 + count), from)
    }
    return products
  }
}
