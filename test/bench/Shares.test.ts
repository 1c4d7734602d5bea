import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"

const root = path.resolve(import.meta.dirname, "../..")

interface Attack {
  readonly attack: string
  readonly answers: Readonly<Record<string, number>>
  readonly refused: number
  readonly worstRatio: number
  readonly worstShareRatio: number
  readonly others: Readonly<Record<string, { readonly ratio: number; readonly shareRatio: number }>>
}

/** Of ten. */
const median = (ratios: ReadonlyArray<number>) => {
  const sorted = ratios.toSorted((a, b) => a - b)
  return ((sorted[4] ?? Number.NaN) + (sorted[5] ?? Number.NaN)) / 2
}

it("The documentation tells what was measured of hostile callers, at every limit that is shared", async () => {
  const { attacks } = await import(path.join(root, "bench/shares/attacks.mjs"))
  const page = fs.readFileSync(path.join(root, "docs/design/limits.md"), "utf8")
  const kept: { readonly attacks: ReadonlyArray<Attack> } = JSON.parse(
    fs.readFileSync(path.join(root, "bench/shares.json"), "utf8")
  )
  expect(kept.attacks.map(({ attack }) => attack)).toEqual(attacks)
  for (const { answers, attack, others, refused, worstRatio, worstShareRatio } of kept.attacks) {
    const kinds = Object.values(others)
    const toCalm = median(kinds.map(({ ratio }) => ratio))
    const toBeside = median(kinds.map(({ shareRatio }) => shareRatio))
    const tries = Object.values(answers).reduce((sum, count) => sum + count, 0)
    const factors = [toCalm, worstRatio, toBeside, worstShareRatio].map((factor) => factor.toFixed(1))
    expect(kinds).toHaveLength(10)
    expect(page).toContain(
      `| ${attack} | ${tries.toLocaleString("en")} | ${refused} | ${factors.join(" | ")} |`
    )
  }
})
