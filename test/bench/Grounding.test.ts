import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"
import { type Figures, read, run } from "../../bench/grounding/Evaluate.ts"

const root = path.resolve(import.meta.dirname, "../..")
const pairs = path.join(root, "bench/grounding/pairs.jsonl")

it("The check of statements catches more than the overlap of words, and less that is right, on 300 labelled pairs", () => {
  expect(read(pairs)).toHaveLength(300)
  const { overlap60, overlap80, overlap80InLong, words, wordsInLong } = run(pairs)
  for (const [own, other] of [
    [words, overlap60],
    [words, overlap80],
    [wordsInLong, overlap80InLong]
  ] as const) {
    expect(own.recall).toBeGreaterThan(other.recall)
    expect(own.precision).toBeGreaterThan(other.precision)
  }
})

const heldOut = path.join(root, "bench/grounding/heldout.jsonl")

/** Of precision and recall, the harmonic mean. */
const both = ({ precision, recall }: Figures) => (2 * precision * recall) / (precision + recall)

it("It does so on pairs that its rules were not made by, too", () => {
  expect(read(heldOut).length).toBeGreaterThanOrEqual(150)
  const { overlap60, overlap80, overlap80InLong, words, wordsInLong } = run(heldOut)
  for (const [own, other] of [
    [words, overlap80],
    [wordsInLong, overlap80InLong]
  ] as const) {
    expect(own.recall).toBeGreaterThan(other.recall)
    expect(own.precision).toBeGreaterThan(other.precision)
  }
  expect(both(words)).toBeGreaterThan(both(overlap80) + 0.1)
  expect(both(words)).toBeGreaterThan(both(overlap60) + 0.1)
})

it("The documentation tells the figures that were measured", () => {
  const page = fs.readFileSync(path.join(root, "docs/retrieval.md"), "utf8")
  const kept = JSON.parse(fs.readFileSync(path.join(root, "bench/grounding.json"), "utf8"))
  const rowOf = ({ byKind, precision, recall }: Figures) =>
    [
      precision,
      recall,
      ...["number changed", "name changed", "negated", "unrelated"].map((kind) => byKind[kind] ?? -1)
    ]
      .map((figure) => figure.toFixed(3))
      .join(" | ")
  for (const [measured, stored] of [
    [run(pairs), kept],
    [run(heldOut), kept.heldOut]
  ] as const) {
    for (const judge of ["words", "overlap80", "wordsInLong", "overlap80InLong"] as const) {
      expect(stored[judge]).toEqual(measured[judge])
      expect(page).toContain(`| ${rowOf(measured[judge])} |`)
    }
  }
  expect(kept.cpuMsPerStatement).toBeLessThanOrEqual(1)
  expect(page).toContain(`${kept.cpuMsPerStatement.toFixed(2)} ms of CPU`)
})
