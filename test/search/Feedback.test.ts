import { describe, expect, it } from "@effect/vitest"
import { feedbackTerms, feedbackForm } from "../../src/search/Feedback.ts"

const long = "Which wing shapes reduce the drag of slender bodies near the speed of sound?"
const form = feedbackForm(long) ?? new Map<string, number>()

/** A result of at least forty terms. */
const result = (words: string, score = 0.5) => ({
  title: "",
  heading: "",
  text: `${words} ${Array.from({ length: 40 }, (_, at) => `own${at}${words.length}`).join(" ")}`,
  score
})

describe("The words of the first results", () => {
  it("are added to long English queries only", () => {
    expect([...form.keys()]).toEqual([
      "wing",
      "shape",
      "reduc",
      "drag",
      "slender",
      "bodi",
      "near",
      "speed",
      "sound"
    ])
    expect(feedbackForm("Where do I put my API key in a request?")).toBeUndefined()
    expect(
      feedbackForm("Which wing shapes reduce the drag of slender bodies near the speed?")
    ).toBeUndefined()
    expect(
      feedbackForm(
        "Welche Flügelformen verringern den Luftwiderstand schlanker Körper bei der Geschwindigkeit des Schalls?"
      )
    ).toBeUndefined()
  })

  it("are those of three results or more, two fifths of the query in all, and more of what is more frequent", () => {
    const first = [
      result("transonic transonic transonic airfoil fuselage"),
      result("transonic airfoil nacelle"),
      result("transonic airfoil nacelle fuselage flutter"),
      result("cooking")
    ]
    const added = feedbackTerms(form, first)
    expect([...added.keys()]).toEqual(["transon", "airfoil"])
    const [transonic = 0, airfoil = 0] = added.values()
    expect(transonic).toBeGreaterThan(airfoil)
    expect(transonic + airfoil).toBeCloseTo((form.size * 2) / 3, 10)
  })

  it("count more where the result has a higher score", () => {
    const weighed = (score: number) =>
      feedbackTerms(form, [
        result("transonic airfoil airfoil", score),
        result("transonic transonic airfoil", 0.5),
        result("transonic airfoil", 0.5)
      ])
    expect(weighed(0.9).get("airfoil")).toBeGreaterThan(weighed(0.9).get("transon") ?? 0)
    expect(weighed(0.1).get("airfoil")).toBeLessThan(weighed(0.1).get("transon") ?? 0)
  })

  it("are none where the results are short, fewer than three, or have nothing in common", () => {
    const short = { title: "", heading: "", text: "transonic airfoil", score: 0.5 }
    expect(feedbackTerms(form, [short, short, short])).toEqual(new Map())
    expect(feedbackTerms(form, [result("transonic"), result("transonic")])).toEqual(new Map())
    expect(feedbackTerms(form, [result("transonic"), result("cooking dinner"), result("a garden")])).toEqual(
      new Map()
    )
    expect(feedbackTerms(form, [])).toEqual(new Map())
  })
})
