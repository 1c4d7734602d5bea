import { describe, expect, it } from "@effect/vitest"
import { digestOf, fingerprintOf, isNear } from "../../src/readers/Fingerprint.ts"

const words = (count: number, change = -1): string =>
  Array.from({ length: count }, (_, at) => (at === change ? "another" : `word${(at * 7_919) % 9_973}`)).join(
    " "
  )

const printOf = (content: string, title = "A") => fingerprintOf({ title, content, format: "text" })

const near = (one: string, other: string, title = "Opening hours") =>
  isNear(printOf(one, "Opening  HOURS"), printOf(other, title))

describe("Pages that are nearly the same", () => {
  it("have one title and differ by about one word in two hundred", () => {
    expect(near(words(400), words(400))).toBe(true)
    expect(near(words(400), words(400, 200))).toBe(true)
    expect(near(words(400), words(400, 200), "Prices")).toBe(false)
    expect(near(words(400), words(300))).toBe(false)
  })

  it("are compared exactly when they are short or very long", () => {
    expect(printOf(words(59))).toBe("")
    expect(printOf(words(60))).not.toBe("")
    const long = `${words(10)} `.repeat(12_000)
    expect(printOf(long.slice(0, 500_000))).not.toBe("")
    expect(printOf(long.slice(0, 500_001))).toBe("")
    expect(isNear("", "")).toBe(false)
    expect(digestOf({ title: "A", content: long, format: "text" })).toBe(
      digestOf({ title: "A", content: long, format: "text" })
    )
    expect(digestOf({ title: "A", content: long, format: "text" })).not.toBe(
      digestOf({ title: "A", content: `${long}.`, format: "text" })
    )
  })
})
