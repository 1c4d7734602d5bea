/**
 * The WebAssembly module of simd.wat. The same loops over typed arrays take 5 to 50 times as long, and a whole search
 * of 2,000 vectors of 384 dimensions 4 times, of 10,000 vectors of 1,536 dimensions 17 times (Node 20, x86-64).
 */
import assembled from "./simd.wat"

/** Declared here, because TypeScript has these types only in its DOM library. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> }
}

/** See simd.wat. Addresses are byte offsets in the module's memory. */
type LookupSums = (tables: number, codes: number, groups: number, pairs: number, out: number) => void
type DotProducts = (query: number, places: number, count: number, blocks: number, out: number) => void
interface Memory {
  readonly buffer: ArrayBuffer
  /** Grows by pages of 64 KiB and returns the old number of pages. The old `buffer` is detached. */
  readonly grow: (pages: number) => number
}

const isLookupSums = (value: unknown): value is LookupSums => typeof value === "function"
const isDotProducts = (value: unknown): value is DotProducts => typeof value === "function"
const isMemory = (value: unknown): value is Memory =>
  typeof value === "object" && value !== null && "buffer" in value && "grow" in value

/** A new instance with one page of 64 KiB of its own memory. */
export const instantiate = () => {
  const { dotProducts, lookupSums, memory } = new WebAssembly.Instance(new WebAssembly.Module(assembled))
    .exports
  if (!isMemory(memory) || !isLookupSums(lookupSums) || !isDotProducts(dotProducts)) {
    throw new Error("simd.wat does not export what it should.")
  }
  return { memory, lookupSums, dotProducts } as const
}
