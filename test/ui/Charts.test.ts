import { describe, expect, it } from "vitest"
import { axisOf, labelledDays } from "../../src/ui/dashboard/components/charts/axis.ts"
import { csvOf } from "../../src/ui/dashboard/components/charts/csv.ts"
import { daysBetween } from "../../src/ui/dashboard/components/charts/days.ts"

describe("A table as CSV", () => {
  it("quotes cells with commas, quotes or line breaks, and leaves unknown values empty", () => {
    expect(
      csvOf(
        ["Name", "Cited"],
        [
          ['The "old", long list', 3],
          ["one\ntwo", null],
          ["plain", -0.5]
        ]
      )
    ).toBe('Name,Cited\r\n"The ""old"", long list",3\r\n"one\ntwo",\r\nplain,-0.5\r\n')
  })

  it("escapes texts that a spreadsheet would read as formulas", () => {
    expect(csvOf(["=1+1"], [["@SUM(A1)"], ["+1"], ["-1"], ["\tx"]])).toBe(
      "'=1+1\r\n'@SUM(A1)\r\n'+1\r\n'-1\r\n'\tx\r\n"
    )
  })
})

describe("The days of a chart", () => {
  it("include those without data", () => {
    expect(daysBetween("2026-02-27T13:00:00Z", "2026-03-02T00:00:01Z")).toEqual([
      "2026-02-27",
      "2026-02-28",
      "2026-03-01",
      "2026-03-02"
    ])
  })

  it("end before the exclusive end of the period, and are at least one", () => {
    expect(daysBetween("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")).toEqual(["2026-03-01"])
    expect(daysBetween("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z")).toEqual(["2026-03-01"])
    expect(daysBetween("2000-01-01T00:00:00Z", "2026-03-01T00:00:00Z")).toHaveLength(400)
  })
})

describe("The axis of a chart", () => {
  it("begins at 0 and ends at a round number that no value exceeds", () => {
    expect(axisOf([3, 9])).toEqual({ ticks: [0, 2, 4, 6, 8, 10], end: 10 })
    expect(axisOf([0.1, 0.55]).end).toBeCloseTo(0.6)
    for (const highest of [1, 2, 7, 12, 99, 101, 6_809, 1e6, 0.004, 1e-9]) {
      const { end, ticks } = axisOf([highest])
      expect(end).toBeGreaterThanOrEqual(highest)
      expect(end).toBeLessThan(highest * 2.5)
      expect(ticks.length).toBeLessThanOrEqual(8)
      expect(ticks.at(-1)).toBeCloseTo(end)
    }
  })

  it("has whole numbers for counts, and one tick without values", () => {
    expect(axisOf([1])).toEqual({ ticks: [0, 1], end: 1 })
    expect(axisOf([])).toEqual({ ticks: [0], end: 1 })
    expect(axisOf([0, 0])).toEqual({ ticks: [0], end: 1 })
  })

  it("ends at a given maximum", () => {
    expect(axisOf([0.4], 1).end).toBe(1)
  })

  it("labels only a few days, however many there are", () => {
    expect(labelledDays(1)).toEqual([0])
    expect(labelledDays(3)).toEqual([0, 1, 2])
    expect(labelledDays(400).length).toBeLessThanOrEqual(6)
  })
})
