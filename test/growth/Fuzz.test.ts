/**
 * Random inputs of every kind, each measured with twice of what it repeats: the steps and the size of the result may at most
 * double. `npm test` measures some thousand, always the same. `npm run test:growth` measures 100,000 and prints the table of
 * docs/performance.md; `SPOKE_GROWTH_INPUTS` and `SPOKE_GROWTH_SEED` choose others.
 */
import { expect, it } from "vitest"
import { fuzz, table } from "./Fuzz.ts"
import { counting } from "./Growth.ts"

const given = process.env["SPOKE_GROWTH_INPUTS"]
const inputs = Number(given ?? 2_000)
const seed = Number(process.env["SPOKE_GROWTH_SEED"] ?? 1)

it(
  `Of ${inputs.toLocaleString("en")} inputs none takes more than twice the steps, or makes more than twice as much, for twice the input`,
  { timeout: 60_000 + inputs * 200 },
  async () => {
    const { faults, worst } = await fuzz(await counting(), inputs, seed)
    if (given !== undefined) process.stderr.write(`${table(worst)}\n`)
    expect(faults).toEqual([])
  }
)
