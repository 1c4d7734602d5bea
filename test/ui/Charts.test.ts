import { describe, expect, it } from "vitest"
import { csvOf } from "../../src/ui/dashboard/components/charts/csv.ts"
import { daysBetween } from "../../src/ui/dashboard/components/charts/days.ts"

describe("A table as a file", () => {
  it("quotes what has commas, quotes and line breaks, and leaves out what is not known", () => {
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

  it("has no text that a spreadsheet would take for a formula", () => {
    expect(csvOf(["=1+1"], [["@SUM(A1)"], ["+1"], ["-1"], ["\tx"]])).toBe(
      "'=1+1\r\n'@SUM(A1)\r\n'+1\r\n'-1\r\n'\tx\r\n"
    )
  })
})

describe("The days of a chart", () => {
  it("are all of them, those without data too", () => {
    expect(daysBetween("2026-02-27T13:00:00Z", "2026-03-02T00:00:01Z")).toEqual([
      "2026-02-27",
      "2026-02-28",
      "2026-03-01",
      "2026-03-02"
    ])
  })

  it("end before the moment that is not part of the time, and are at least one", () => {
    expect(daysBetween("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")).toEqual(["2026-03-01"])
    expect(daysBetween("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z")).toEqual(["2026-03-01"])
    expect(daysBetween("2000-01-01T00:00:00Z", "2026-03-01T00:00:00Z")).toHaveLength(400)
  })
})
