/**
 * The two loops that comparing vectors comes down to, in WebAssembly, whose SIMD does in one step what a loop over numbers
 * does in sixteen: sums by signs, and products of bytes. The module is put together here from its instructions.
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
/** Signed LEB128, of up to two bytes: between −64 and 8,191. */
const constant = (value: number): Code => [
  0x41,
  ...(value < 64 ? [value & 127] : [(value & 127) | 128, value >> 7])
]
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
/** Eight bytes, as 16-bit numbers. */
const loadShorts = (offset: number) => code(simd(1), [0, offset])
const every = (byte: number) =>
  code(
    simd(12),
    Array.from({ length: 16 }, () => byte)
  )
const zero = every(0)
const store = (offset = 0) => code(simd(11), [0, offset])
const and = simd(78)
const lookUp = simd(14)
const shiftBytes = simd(109)
const addBytes = simd(110)
const lowOfBytes = simd(137)
const highOfBytes = simd(138)
const addShorts = simd(142)
const addInts = simd(174)
const products = simd(186)
const lane = (local: number, place: number) => code(get(local), simd(27), [place])
/** The four integers of `local` together. */
const total = (local: number) => code(...[0, 1, 2, 3].map((place) => lane(local, place)), add, add, add)

/**
 * `sums(tables, codes, groups, pairs, out)`: of `groups` of sixteen codes of `pairs` bytes each. The first bytes of all
 * sixteen come first, then the second ones; each half of a byte is looked up in a table of its own of sixteen bytes. The
 * sums are 16-bit numbers.
 */
const sums = () => {
  const [tables, at, groups, pairs, out, pair, table] = [0, 1, 2, 3, 4, 5, 6] as const
  const [first, second, some] = [7, 8, 9] as const
  const widened = (sum: number, widen: Code) => code(get(sum), get(some), widen, addShorts, set(sum))
  return times(
    groups,
    code(zero, set(first), zero, set(second), get(tables), set(table), get(pairs), set(pair)),
    times(
      pair,
      code(get(at), load(), set(some)),
      code(get(table), load(), get(some), every(15), and, lookUp),
      code(get(table), load(16), get(some), constant(4), shiftBytes, lookUp, addBytes, set(some)),
      code(widened(first, lowOfBytes), widened(second, highOfBytes)),
      code(raise(table, 32), raise(at, 16))
    ),
    code(get(out), get(first), store(), get(out), get(second), store(16), raise(out, 32))
  )
}

/** Blocks that a step of `dots` takes: their number is to be a multiple of it. */
export const blocksEach = 4

/** `dots(query, places, count, blocks, out)`: of 16-bit numbers with the bytes that stand at each of `count` places. */
const dots = () => {
  const [query, places, count, blocks, out, block, asked, at] = [0, 1, 2, 3, 4, 5, 6, 7] as const
  const [one, other] = [8, 9] as const
  const eight = (place: number) => {
    // In turns: an addition would have to wait for the one before.
    const sum = place % 2 === 0 ? one : other
    return code(
      get(at),
      loadShorts(place * 8),
      get(asked),
      load(place * 16),
      products,
      get(sum),
      addInts,
      set(sum)
    )
  }
  const step = Array.from({ length: blocksEach * 2 }, (_, place) => eight(place))
  return times(
    count,
    code(zero, set(one), zero, set(other), get(query), set(asked), get(blocks), set(block)),
    code(get(places), loadInt, set(at)),
    code(
      beginLoop,
      ...step,
      code(raise(asked, 32 * blocksEach), raise(at, 16 * blocksEach)),
      code(raise(block, -blocksEach), get(block), again, end)
    ),
    code(get(one), get(other), addInts, set(one), get(out), total(one), storeInt),
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
      [...named("sums"), 0, 0],
      [...named("dots"), 0, 1]
    ]),
    section(10, [
      body(
        [
          [2, i32],
          [3, v128]
        ],
        sums()
      ),
      body(
        [
          [3, i32],
          [2, v128]
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
  const { dots, memory, sums } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports
  if (!isMemory(memory) || !isLoop(sums) || !isLoop(dots)) {
    throw new Error("The kernel does not export what it is made of.")
  }
  return { memory, sums, dots } as const
}
