import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"

const root = path.resolve(import.meta.dirname, "../..")

interface Attack {
  readonly attack: string
  readonly answers: Readonly<Record<string, number>>
  readonly refused: number
  readonly all: { readonly ratio: number; readonly shareRatio: number }
  readonly worstRatio: number
  readonly worstShareRatio: number
  readonly others: Readonly<Record<string, unknown>>
}

it("The documentation tells what was measured of hostile callers, at every limit that is shared", async () => {
  const { attacks } = await import(path.join(root, "bench/shares/attacks.mjs"))
  const page = fs.readFileSync(path.join(root, "docs/design/limits.md"), "utf8")
  const kept: { readonly attacks: ReadonlyArray<Attack> } = JSON.parse(
    fs.readFileSync(path.join(root, "bench/shares.json"), "utf8")
  )
  expect(kept.attacks.map(({ attack }) => attack)).toEqual(attacks)
  for (const { all, answers, attack, others, refused, worstRatio, worstShareRatio } of kept.attacks) {
    const tries = Object.values(answers).reduce((sum, count) => sum + count, 0)
    const factors = [all.ratio, worstRatio, all.shareRatio, worstShareRatio].map((factor) =>
      factor.toFixed(1)
    )
    expect(Object.keys(others)).toHaveLength(10)
    expect(page).toContain(
      `| ${attack} | ${tries.toLocaleString("en")} | ${refused} | ${factors.join(" | ")} |`
    )
  }
})
