/** Growth of steps and of the result's size with the input, measured by counting code (test/growth/Instrument.ts). */
import { bundle } from "./Instrument.ts"

type Modules = typeof import("./Modules.ts")
export type Counting = Modules & { readonly $growth: { steps: number } }

let loaded: Promise<Counting> | undefined

/** The modules of test/growth/Modules.ts with their counters, made once. */
export const counting = (): Promise<Counting> =>
  (loaded ??= bundle("test/growth/Modules.ts").then((file): Promise<Counting> => import(file)))

/** Characters, bytes and numbers that a value holds, each time that it does: what is written of it, or sent, is as long. */
export const sizeOf = (value: unknown, depth = 12): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 8
  if (ArrayBuffer.isView(value)) return value.byteLength
  if (depth === 0) return 8
  let size = 8
  const members =
    value instanceof Map ? [...value].flat() : value instanceof Set ? [...value] : Object.values(value)
  for (const member of members) size += sizeOf(member, depth - 1)
  return size
}

export interface Measured {
  readonly steps: number
  /** Of the result. */
  readonly held: number
}

export const measure = async (m: Counting, run: () => unknown): Promise<Measured> => {
  const before = m.$growth.steps
  const result = await run()
  return { steps: m.$growth.steps - before, held: sizeOf(result) }
}

/** An input that can be made in any size, and who takes it. */
export interface Subject<A> {
  readonly make: (size: number) => A
  readonly run: (m: Counting, input: A) => unknown
}

export interface Growth {
  readonly measured: ReadonlyArray<Measured>
  /** Of twice the input to the input, the least of the doublings: 2 for linear work, 4 for quadratic. */
  readonly steps: number
  readonly held: number
}

const ratio = (small: number, large: number) => (large <= small ? 1 : large / Math.max(1, small))

/**
 * Doubles the input twice. A threshold may lie between two sizes and let one ratio stand out; only what grows both times
 * grows.
 */
export const growthOf = async <A>(m: Counting, { make, run }: Subject<A>, size: number): Promise<Growth> => {
  // Patterns that are compiled once and tables that are made once are no growth.
  await run(m, make(size))
  const measured: Array<Measured> = []
  for (const factor of [1, 2, 4]) {
    const input = make(size * factor)
    measured.push(await measure(m, () => run(m, input)))
  }
  const [one, two, four] = measured as [Measured, Measured, Measured]
  return {
    measured,
    steps: Math.min(ratio(one.steps, two.steps), ratio(two.steps, four.steps)),
    held: Math.min(ratio(one.held, two.held), ratio(two.held, four.held))
  }
}

/** Twice, and what sorting adds. */
const twice = 2.2

export const isLinear = ({ held, steps }: Growth): boolean => steps <= twice && held <= twice
