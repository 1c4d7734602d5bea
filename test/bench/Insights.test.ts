import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"
import { type Figures, measure, read } from "../../bench/insights/Evaluate.ts"

const root = path.resolve(import.meta.dirname, "../..")

it("The documentation tells the figures of the grouping of questions that were measured", () => {
  const page = fs.readFileSync(path.join(root, "docs/insights.md"), "utf8")
  const kept = JSON.parse(fs.readFileSync(path.join(root, "bench/insights.json"), "utf8"))
  const lines = read(path.join(root, "bench/insights/questions.jsonl"))
  expect(lines).toHaveLength(kept.questions)
  // Vectors are not made here: of the two rows the words alone are measured again.
  expect(kept.words).toEqual(measure(lines, []))
  const rowOf = ({ f1, noiseAlone, precision, recall }: Figures) =>
    [precision, recall, f1, noiseAlone].map((figure) => figure.toFixed(3)).join(" | ")
  for (const figures of [kept.meaning, kept.words]) expect(page).toContain(`| ${rowOf(figures)} |`)
})

it("The documentation tells the figures of the made-up company that were measured", () => {
  const page = fs.readFileSync(path.join(root, "docs/insights.md"), "utf8")
  const kept = JSON.parse(fs.readFileSync(path.join(root, "bench/company.json"), "utf8"))
  for (const name of ["contradictions", "duplicates", "stale", "gaps"]) {
    const { found, planted, precision, recall } = kept[name]
    expect(page).toContain(`| ${planted} | ${found} | ${precision.toFixed(3)} | ${recall.toFixed(3)} |`)
  }
  const { broken, held, known } = kept
  expect(broken).toBe(0)
  const told = [
    `${held.before} of ${held.questions} were answered before`,
    `${held.after} of ${held.questions} are after`,
    `Of ${known.questions} questions that the pages answer, ${known.before} were answered before and ${known.after} are after`
  ]
  const text = page.replaceAll(/\s+/gu, " ")
  for (const sentence of told) expect(text).toContain(sentence)
})
