import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"

const root = path.resolve(import.meta.dirname, "../..")

interface Attack {
  readonly attack: string
  readonly answers: Readonly<Record<string, number>>
  readonly refused: number
  readonly worstRatio: number
  readonly others: Readonly<Record<string, { readonly ratio: number }>>
}

it("The documentation tells what was measured of hostile callers, at every limit that is shared", async () => {
  const { attacks } = await import(path.join(root, "bench/shares/attacks.mjs"))
  const page = fs.readFileSync(path.join(root, "docs/design/limits.md"), "utf8")
  const kept: { readonly attacks: ReadonlyArray<Attack> } = JSON.parse(
    fs.readFileSync(path.join(root, "bench/shares.json"), "utf8")
  )
  expect(kept.attacks.map(({ attack }) => attack)).toEqual(attacks)
  for (const { answers, attack, others, refused, worstRatio } of kept.attacks) {
    const ratios = Object.values(others)
      .map(({ ratio }) => ratio)
      .toSorted((a, b) => a - b)
    const median = ((ratios[4] ?? Number.NaN) + (ratios[5] ?? Number.NaN)) / 2
    const tries = Object.values(answers).reduce((sum, count) => sum + count, 0)
    expect(ratios).toHaveLength(10)
    expect(page).toContain(
      `| ${attack} | ${tries.toLocaleString("en")} | ${refused} | ${median.toFixed(1)} | ${worstRatio.toFixed(1)} |`
    )
  }
})
