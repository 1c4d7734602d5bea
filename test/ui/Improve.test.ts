import { describe, expect, it } from "vitest"
import type { InsightGroup } from "../../src/domain/conversations/Insights.ts"
import { correctionRequestOf } from "../../src/ui/dashboard/pages/improve/correctionRequest.ts"
import { markDifferences } from "../../src/ui/dashboard/pages/improve/markDifferences.ts"
import { monthsUntil } from "../../src/ui/dashboard/pages/improve/months.ts"
import {
  reasonText,
  reasonTexts,
  differingValues
} from "../../src/ui/dashboard/pages/improve/findingReasons.ts"

const bracketed = (text: string, other: string, values: ReadonlyArray<string>) =>
  markDifferences(text, other, values)
    .map((part) => (part.isNew ? `[${part.text}]` : part.text))
    .join("")

describe("What two statements disagree in", () => {
  it("is marked as whole words, whatever their case", () => {
    expect(bracketed("Return it within 14 days, not 140.", "", ["14"])).toBe(
      "Return it within [14] days, not 140."
    )
    expect(bracketed("Closed on Monday and monday only.", "", ["monday"])).toBe(
      "Closed on [Monday] and [monday] only."
    )
    expect(bracketed("It costs 1.50 or (20) euros.", "", ["1.50", "20"])).toBe(
      "It costs [1.50] or ([20]) euros."
    )
    expect(bracketed("It costs 1x50.", "It costs 1x50.", ["1.50"])).toBe("It costs 1x50.")
  })

  it("is each word that the other does not have where no value is written so", () => {
    expect(bracketed("Return it within two weeks.", "Return it within 30 days.", ["2"])).toBe(
      "Return it within[ two weeks.]"
    )
    expect(bracketed("Pets are not allowed.", "Pets are allowed.", [])).toBe("Pets are[ not] allowed.")
  })

  it("keeps every character", () => {
    for (const values of [[], ["a"], ["*"], ["b c", ""]])
      expect(
        markDifferences("a  b c\n* d ", "a d", values)
          .map(({ text }) => text)
          .join("")
      ).toBe("a  b c\n* d ")
  })
})

describe("Why something is a finding", () => {
  const format = { number: String, percent: (share: number) => `${Math.round(share * 100)} %` }

  it("is said in a sentence, in both languages", () => {
    const numbers = { kind: "number", one: ["14"], other: ["30", "31"] } as const
    expect(reasonText(reasonTexts.en, format, numbers)).toBe("The numbers differ: 14 and 30, 31.")
    expect(reasonText(reasonTexts.de, format, numbers)).toBe("Die Zahlen weichen ab: 14 und 30, 31.")
    expect(reasonText(reasonTexts.en, format, { kind: "same", share: 0.875 })).toContain("88 %")
    const unchanged = { kind: "unchanged", days: 212, thumbsUp: 1, thumbsDown: 4 } as const
    expect(reasonText(reasonTexts.en, format, unchanged)).toBe(
      "Unchanged for 212 days. Replies that cite it were rated down 4 and up 1 times in the last 90 days."
    )
  })

  it("names the values of numbers and dates alone: a denial is in no word of its own", () => {
    expect(
      differingValues({
        reasons: [
          { kind: "number", one: ["14"], other: ["30"] },
          { kind: "negation", one: ["no"], other: ["yes"] },
          { kind: "date", one: ["may"], other: ["june"] }
        ]
      })
    ).toEqual([
      ["14", "may"],
      ["30", "june"]
    ])
  })
})

describe("A correction of a group", () => {
  const example = (agentId: string, runId: string) => ({
    agentId,
    runId,
    conversationId: "cnv_1",
    question: "Why?",
    at: "2026-01-02T00:00:00.000Z",
    kind: "failed" as const
  })
  const group: typeof InsightGroup.Encoded = {
    id: "grp_1",
    title: "Why?",
    name: null,
    count: 3,
    kinds: { unanswered: 0, thumbsDown: 0, handedOver: 0, stopped: 0, failed: 3 },
    people: 2,
    trend: { earlier: 1, later: 2 },
    lastAt: "2026-01-02T00:00:00.000Z",
    sources: [],
    examples: [example("agt_1", "run_3"), example("agt_2", "run_2"), example("agt_1", "run_1")]
  }
  const period = { from: "2026-01-01T00:00:00.000Z", to: "2026-01-31T00:00:00.000Z" }

  it("is made from all of it within the time of its report, where that is of one agent", () => {
    expect(correctionRequestOf(group, "agt_1", period)).toEqual({
      agentId: "agt_1",
      body: { group: "grp_1", ...period }
    })
  })

  it("is made from the examples of the agent that was asked last, where the report is of all", () => {
    expect(correctionRequestOf(group, undefined, period)).toEqual({
      agentId: "agt_1",
      body: { runIds: ["run_3", "run_1"] }
    })
    expect(correctionRequestOf({ ...group, examples: [] }, undefined, period)).toBe(null)
  })
})

describe("The months to choose from", () => {
  it("are the newest first, across years and from the end of a long month", () => {
    expect(monthsUntil(new Date("2026-03-31T23:59:00Z"), 4)).toEqual([
      "2026-03",
      "2026-02",
      "2026-01",
      "2025-12"
    ])
  })
})
