/**
 * The two loops that comparing vectors comes down to, in WebAssembly, whose SIMD does in one step what a loop over numbers
 * does in sixteen: bits that differ, and products of bytes. The module is put together here from its instructions.
 */

/** The library of the platform names it where there is a DOM only. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> }
}

const i32 = 0x7f
const v128 = 0x7b

/** Unsigned LEB128. */
const leb = (value: number): ReadonlyArray<number> =>
  value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]
const sized = (bytes: ReadonlyArray<number>) => [...leb(bytes.length), ...bytes]
const listed = (items: ReadonlyArray<ReadonlyArray<number>>) => [...leb(items.length), ...items.flat()]
const section = (id: number, items: ReadonlyArray<ReadonlyArray<number>>) => [id, ...sized(listed(items))]
const named = (name: string) => sized([...name].map((letter) => letter.charCodeAt(0)))

type Code = ReadonlyArray<number>
const code = (...parts: ReadonlyArray<Code>): Code => parts.flat()
const get = (local: number): Code => [0x20, local]
const set = (local: number): Code => [0x21, local]
/** Between −64 and 63. */
const constant = (value: number): Code => [0x41, value & 127]
const add: Code = [0x6a]
const storeInt: Code = [0x36, 2, 0]
const loadInt: Code = [0x28, 2, 0]
const beginLoop: Code = [0x03, 0x40]
const again: Code = [0x0d, 0]
const end: Code = [0x0b]
const raise = (local: number, by: number) => code(get(local), constant(by), add, set(local))
/** Repeats `body` as often as `local` says, which is more than 0 and counted down. */
const times = (local: number, ...body: ReadonlyArray<Code>) =>
  code(beginLoop, ...body, raise(local, -1), get(local), again, end)

const simd = (instruction: number): Code => [0xfd, ...leb(instruction)]
const load = (offset = 0) => code(simd(0), [0, offset])
const zero = code(
  simd(12),
  Array.from({ length: 16 }, () => 0)
)
const xor = simd(81)
const ones = simd(98)
const pairsOfBytes = simd(125)
const pairsOfShorts = simd(127)
const addShorts = simd(142)
const lowToShorts = simd(135)
const highToShorts = simd(136)
const addInts = simd(174)
const products = simd(186)
const lane = (local: number, place: number) => code(get(local), simd(27), [place])
/** The four integers of `local` together. */
const total = (local: number) => code(...[0, 1, 2, 3].map((place) => lane(local, place)), add, add, add)

/** `unequal(query, codes, count, blocks, out)`: of `count` codes of 16 · `blocks` bytes, one behind the other. */
const unequal = () => {
  const [query, at, count, blocks, out, block, asked, sum] = [0, 1, 2, 3, 4, 5, 6, 7] as const
  return times(
    count,
    code(zero, set(sum), get(query), set(asked), get(blocks), set(block)),
    times(
      block,
      code(get(sum), get(asked), load(), get(at), load(), xor, ones, pairsOfBytes, addShorts, set(sum)),
      code(raise(asked, 16), raise(at, 16))
    ),
    code(get(sum), pairsOfShorts, set(sum), get(out), total(sum), storeInt, raise(out, 4))
  )
}

/** `dots(query, places, count, blocks, out)`: of 16-bit numbers with the bytes that stand at each of `count` places. */
const dots = () => {
  const [query, places, count, blocks, out, block, asked, at] = [0, 1, 2, 3, 4, 5, 6, 7] as const
  const [low, high, some] = [8, 9, 10] as const
  const half = (sum: number, widen: Code, offset: number) =>
    code(get(sum), get(some), widen, get(asked), load(offset), products, addInts, set(sum))
  return times(
    count,
    code(zero, set(low), zero, set(high), get(query), set(asked), get(blocks), set(block)),
    code(get(places), loadInt, set(at)),
    times(
      block,
      code(get(at), load(), set(some), half(low, lowToShorts, 0), half(high, highToShorts, 16)),
      code(raise(asked, 32), raise(at, 16))
    ),
    code(get(low), get(high), addInts, set(low), get(out), total(low), storeInt),
    code(raise(out, 4), raise(places, 4))
  )
}

/** Locals of some types beyond the five parameters. */
const body = (locals: ReadonlyArray<readonly [count: number, type: number]>, instructions: Code) =>
  sized(code(listed(locals), instructions, end))

/** Magic number and version. */
const header: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
const fiveInts = Array.from({ length: 5 }, () => [i32])

const bytes = Uint8Array.from(
  code(
    header,
    section(1, [[0x60, ...listed(fiveInts), 0]]),
    section(3, [[0], [0]]),
    // One page to begin with.
    section(5, [[0, 1]]),
    section(7, [
      [...named("memory"), 2, 0],
      [...named("unequal"), 0, 0],
      [...named("dots"), 0, 1]
    ]),
    section(10, [
      body(
        [
          [2, i32],
          [1, v128]
        ],
        unequal()
      ),
      body(
        [
          [3, i32],
          [3, v128]
        ],
        dots()
      )
    ])
  )
)

type Loop = (query: number, codes: number, count: number, blocks: number, out: number) => void
interface Memory {
  readonly buffer: ArrayBuffer
  readonly grow: (pages: number) => number
}

const isLoop = (value: unknown): value is Loop => typeof value === "function"
const isMemory = (value: unknown): value is Memory =>
  typeof value === "object" && value !== null && "buffer" in value && "grow" in value

/** The module with a memory of its own of one page of 64 KiB. Places and `out` are byte addresses in it. */
export const makeKernel = () => {
  const { dots, memory, unequal } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports
  if (!isMemory(memory) || !isLoop(unequal) || !isLoop(dots)) {
    throw new Error("The kernel does not export what it is made of.")
  }
  return { memory, unequal, dots } as const
}
