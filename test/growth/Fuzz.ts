/** Draws inputs, doubles each, and finds those for which the steps or the result grow faster. */
import { setImmediate as otherWork } from "node:timers/promises"
import { randomOf } from "../faults/Random.ts"
import { type Counting, measure, type Measured } from "./Growth.ts"
import type { Case, Kind } from "./Kind.ts"
import { kinds } from "./Kinds.ts"

/** What a doubling may add besides: tables of constants, a first chunk. */
const besides = { steps: 6_000, held: 400 }
/** Twice, and what sorting adds. */
const twice = 2.2

/** Kinds whose work a limit bounds instead. */
const bounded: ReadonlySet<string> = new Set([
  // The library looks for each page from the first one on; a file may have 3,000 pages.
  "pages of a PDF"
])

/** The most that was seen of one kind. */
export interface Worst {
  readonly inputs: number
  /** Of twice the input to the input, where that is large enough to say something. */
  readonly steps: number
  readonly held: number
  /** Steps for each character. */
  readonly perCharacter: number
}

const exceeds = (small: Measured, large: Measured): boolean =>
  large.steps > small.steps * twice + besides.steps || large.held > small.held * twice + besides.held

const measured = async (m: Counting, one: Case, factor: number) => {
  const { run, size } = one.prepare(factor)
  return { ...(await measure(m, () => run(m))), size }
}

/** Every input of it is drawn from `seed` alone. */
export const drawn = (seed: number): { readonly kind: Kind; readonly one: Case } => {
  const random = randomOf(seed)
  const kind = random.weighed(kinds.map((each) => [each.weight, each]))
  return { kind, one: kind.draw(random) }
}

const ratio = (small: number, large: number, least: number): number => (large > 4 * least ? large / small : 0)

const faultOf = (kind: Kind, seed: number, all: ReadonlyArray<Measured>, one: Case): string => {
  const list = (figures: ReadonlyArray<number>) => figures.join(", ")
  const steps = list(all.map((each) => each.steps))
  const held = list(all.map((each) => each.held))
  return `${kind.name}, seed ${seed}: steps ${steps}; result ${held}; input ${one.show()}`
}

/** Measures `inputs` inputs, two and two. What stands out is doubled on: a threshold stands out once, growth goes on. */
export const fuzz = async (m: Counting, inputs: number, firstSeed: number) => {
  const worst = new Map<Kind, Worst>()
  const faults: Array<string> = []
  for (let seed = firstSeed; seed < firstSeed + inputs / 2; seed++) {
    // The test runner has to hear from its worker.
    await otherWork()
    const { kind, one } = drawn(seed)
    const all = [await measured(m, one, 1)]
    let small = all[0]!
    let large = await measured(m, one, 2)
    all.push(large)
    const isFault = () => !bounded.has(kind.name) && exceeds(small, large)
    for (let factor = 4; factor <= 16 && isFault(); factor *= 2) {
      small = large
      large = await measured(m, one, factor)
      all.push(large)
    }
    if (isFault()) faults.push(faultOf(kind, seed, all, one))
    const known = worst.get(kind) ?? { inputs: 0, steps: 0, held: 0, perCharacter: 0 }
    worst.set(kind, {
      inputs: known.inputs + all.length,
      steps: Math.max(known.steps, ratio(small.steps, large.steps, besides.steps)),
      held: Math.max(known.held, ratio(small.held, large.held, besides.held)),
      perCharacter: Math.max(known.perCharacter, large.steps / large.size)
    })
  }
  return { worst, faults }
}

/** As Markdown. What was never large enough to say something is a dash. */
export const table = (worst: ReadonlyMap<Kind, Worst>): string => {
  const figure = (value: number) => (value === 0 ? "–" : value.toFixed(2))
  const rows = kinds.flatMap((kind) => {
    const { held, inputs, perCharacter, steps } = worst.get(kind) ?? {
      inputs: 0,
      steps: 0,
      held: 0,
      perCharacter: 0
    }
    const figures = [inputs.toLocaleString("en"), figure(steps), figure(held), Math.round(perCharacter)]
    return inputs === 0 ? [] : [`| ${[kind.name, kind.from, ...figures].join(" | ")} |`]
  })
  const head =
    "| Input | Sent by | Inputs | Steps | Result | Steps for each character |\n|---|---|---|---|---|---|"
  return [head, ...rows].join("\n")
}
