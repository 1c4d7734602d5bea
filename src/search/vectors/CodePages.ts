/**
 * Quantized vectors ("codes") of equal length in numbered slots. All collections share the memory of one SIMD module,
 * in pages. Pages of a collection that was garbage-collected are reused.
 */
import { instantiate } from "./Simd.ts"

/** Bytes that a collection allocates at a time; small enough for small collections. */
const pageBytes = 16_384
/** Numbers of a block of a dot product, and so its bytes. */
const blockBytes = 64
/** The page size of WebAssembly memory, and the number of pages allocated at a time. */
const wasmPageBytes = 65_536
const wasmPagesTaken = 16
const pagesPerWasmPage = wasmPageBytes / pageBytes
/**
 * The first page holds the arguments of calls: query (tables or numbers), addresses of codes, results. Tables may
 * extend over the addresses.
 */
const queryAt = 0
const addressesAt = 16_384
const resultsAt = 40_960
/** Maximum number of codes of one call. */
const maxProducts = 4_096
/**
 * Codes of a group of {@link CodePages.lookupSums}, the bytes of its sums, and the maximum number of groups of one
 * call.
 */
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
  // Growing the memory detaches the buffer of the old views.
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

  /** For codes of `length` bytes, at most 8,192. The last block is filled up with zeros. */
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

  /** Number of slots of a page. */
  get slots(): number {
    return this.#pages.length * this.#slotsPerPage
  }

  #addressOf(slot: number): number {
    const page = this.#pages[Math.floor(slot / this.#slotsPerPage)] ?? 0
    return page * pageBytes + (slot % this.#slotsPerPage) * this.#slotBytes
  }

  /** Makes room for slots 0 to `slots` − 1; new slots are zero. */
  grow(slots: number): void {
    while (this.slots < slots) {
      const page = takePage()
      views.bytes.fill(0, page * pageBytes, (page + 1) * pageBytes)
      this.#pages.push(page)
    }
  }

  /** Releases the pages behind the first `slots`. */
  shrink(slots: number): void {
    while (this.#pages.length > 0 && (this.#pages.length - 1) * this.#slotsPerPage >= slots) {
      freePages.push(this.#pages.pop() ?? 0)
    }
  }

  /** The bytes of a slot, for reading and writing. Valid until any collection grows. */
  slot(slot: number): Uint8Array {
    const address = this.#addressOf(slot)
    return views.bytes.subarray(address, address + this.#slotBytes)
  }

  move(from: number, to: number): void {
    this.slot(to).set(this.slot(from))
  }

  /**
   * For slots that hold a group of sixteen interleaved codes: for each code in slots 0 to `slots` − 1, the sum of the
   * entries that its half bytes select in `tables`, which has sixteen bytes per half byte.
   */
  lookupSums(tables: Uint8Array, slots: number): Uint16Array {
    const sums = new Uint16Array(slots * groupSize)
    const { bytes, uint16 } = views
    // The padding of the last block selects zeros.
    const pairs = this.#slotBytes / groupSize
    bytes.fill(0, queryAt, queryAt + pairs * pairTablesBytes).set(tables, queryAt)
    for (let from = 0; from < slots;) {
      const slotsLeft = this.#slotsPerPage - (from % this.#slotsPerPage)
      const count = Math.min(slotsLeft, slots - from, maxGroups)
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
