import { expect, it } from "vitest"
import { type CompanySize, makeCompany, wholeCompany } from "../../bench/company/Company.ts"
import { run } from "../../bench/company/Evaluate.ts"
import { layerHashing } from "../HashingEmbedder.ts"

const small: CompanySize = {
  pages: 40,
  conversations: 120,
  gaps: 6,
  contradictions: 5,
  duplicates: 3,
  stale: 4
}

it("A made-up company is the same for the same seed, and has what is planted", () => {
  const company = makeCompany(wholeCompany)
  expect(makeCompany(wholeCompany)).toEqual(company)
  expect(makeCompany(wholeCompany, 21)).not.toEqual(company)
  expect(company.pages).toHaveLength(300)
  expect(new Set(company.pages.map(({ name }) => name)).size).toBe(300)
  expect(company.askings).toHaveLength(2_000)
  const { contradictions, gaps, stale } = company
  expect([gaps.length, contradictions.length, stale.length]).toEqual([40, 25, 30])
})

it("What is planted in a small company is found, and correcting every gap improves what was never asked and breaks nothing", async () => {
  const figures = await run(small, layerHashing())
  for (const { precision, recall } of [figures.contradictions, figures.duplicates, figures.stale]) {
    expect(precision).toBeGreaterThanOrEqual(0.8)
    expect(recall).toBeGreaterThanOrEqual(0.8)
  }
  expect(figures.held.after).toBeGreaterThan(figures.held.before)
  expect(figures.broken).toBe(0)
  expect(figures.known.after).toBeGreaterThanOrEqual(figures.known.before)
}, 240_000)
