import { describe, expect, it } from "vitest"
import {
  indexKeysOf,
  disagreements,
  isSame,
  type Statement,
  statementsOf
} from "../../src/search/Statements.ts"

const one = (text: string): Statement => {
  const [found] = statementsOf(text)
  if (found === undefined) throw new Error(`No statement: ${text}`)
  return found
}

const kinds = (first: string, second: string) => {
  const found = disagreements(one(first), one(second))
  expect(disagreements(one(second), one(first)).map(({ kind }) => kind)).toEqual(
    found.map(({ kind }) => kind)
  )
  return found.map(({ kind }) => kind)
}

describe("Two statements", () => {
  it.each([
    [
      "Customers can return goods within 30 days.",
      "Customers can return the goods within 14 days.",
      "number"
    ],
    [
      "The warranty covers batteries for 2 years.",
      "The warranty covers batteries for three years.",
      "number"
    ],
    ["A parcel may weigh up to 1,000 kg in total.", "A parcel may weigh up to 1200 kg in total.", "number"],
    ["The museum shop closes on Sunday afternoon.", "The museum shop closes on Monday afternoon.", "date"],
    [
      "The tariff changes on 2026-03-01 for members.",
      "The tariff changes on 2026-04-01 for members.",
      "date"
    ],
    ["Pets are allowed in the guest rooms.", "Pets are not allowed in the guest rooms.", "negation"],
    ["Der Versand ins Ausland kostet 12 Euro.", "Der Versand ins Ausland kostet 15 Euro.", "number"]
  ])("disagree: %s %s", (first, second, kind) => {
    expect(kinds(first, second)).toEqual([kind])
  })

  it.each([
    ["Customers can return goods within 30 days.", "Within 30 days, customers can return goods."],
    ["Express shipping takes 1 day.", "Standard shipping takes 3 days."],
    [
      "The lamp Aria weighs 300 grams without its base.",
      "The lamp Boreas weighs 400 grams without its base."
    ],
    [
      "Spare parts of the cotton ladder stay in stock for 5 years.",
      "Spare parts of the enamel ladder stay in stock for 13 years."
    ],
    ["A parcel weighs 1,000 kg at most today.", "A parcel weighs 1000 kg at most today."],
    ["The kitchen opens at 9 and the bar at 5.", "Parking spaces near the harbour cost 9 euros a day."],
    ["Pets are not allowed in rooms.", "Pets are never allowed in rooms."]
  ])("do not disagree: %s %s", (first, second) => {
    expect(kinds(first, second)).toEqual([])
  })

  it("that share words enough to be compared have an anchor in common", () => {
    const texts = [
      "Customers can return goods within 30 days.",
      "Customers of the online shop can return goods in their original box within 14 days.",
      "The goods that customers return are paid back."
    ]
    for (const first of texts)
      for (const second of texts) {
        const shared = disagreements(one(first), one(second)).length > 0 || isSame(one(first), one(second))
        const anchors = new Set(indexKeysOf(one(first)))
        if (shared) expect(indexKeysOf(one(second)).some((anchor) => anchors.has(anchor))).toBe(true)
      }
  })
})

it("Tables, code, headings and questions state nothing, and what is long is bounded", () => {
  const text = [
    "# Returns within 30 days of delivery",
    "| Plan | Price of seats |",
    "```",
    "const days = 30 // days of return",
    "```",
    "How many days do returns of goods take?",
    "- Returns of goods take 30 days."
  ].join("\n")
  expect(statementsOf(text).map((statement) => statement.text)).toEqual(["Returns of goods take 30 days."])
  expect(statementsOf("Returns of goods take 30 days. ".repeat(1_000))).toHaveLength(60)
})
