import { describe, expect, it } from "@effect/vitest"
import {
  type Citation,
  judge,
  matchesDocument,
  isRefusal,
  type Reply,
  containsFact
} from "../../src/domain/agents/evaluation/Judge.ts"
import { extractiveNoticesFor, refusalFor } from "../../src/domain/chat/Notices.ts"
import { reportText } from "../../src/app/cli/eval/ReportText.ts"
import {
  compare as compareInSteps,
  compareCases,
  isRegression,
  measures,
  type Report,
  summarize
} from "../../src/domain/agents/evaluation/Report.ts"

const byQuestion = ({ question }: { readonly question: string }) => question

/** All steps of the comparison of two runs. */
const compare = (before: Report, after: Report) => {
  const steps = compareInSteps(before, after)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

const citation = (index: number, given: Partial<Citation> = {}): Citation => ({
  index,
  sourceId: "src_1",
  sourceName: "Manual",
  title: "Guide > Install",
  url: `https://example.com/docs/page-${index}.md`,
  ...given
})
const reply = (text: string, citations: ReadonlyArray<Citation> = [], given: Partial<Reply> = {}): Reply => ({
  text,
  citations,
  latency: 10,
  tokens: { input: 3, output: 2 },
  ...given
})
const asked = (given: Partial<Parameters<typeof judge>[0]> = {}) => ({
  line: 1,
  question: "How?",
  expectSources: [],
  expectFacts: [],
  ...given
})

describe("Cited documents", () => {
  const text = (index: number, sourceName: string) =>
    citation(index, { sourceId: `src_${index}`, sourceName, title: sourceName, url: "text:" })

  it("are one for each text and each upload, whatever their addresses", () => {
    const cited = reply("As said. [1] [2]", [text(1, "Returns"), text(2, "Tolls")])
    expect(judge(asked({ expectSources: ["Tolls"] }), cited, [])).toMatchObject({
      sourceCited: true,
      sourceAt1: false
    })
  })

  it("of a page count under each of their headings", () => {
    const url = "https://example.com/docs"
    const cited = reply("As said. [1] [2]", [
      citation(1, { title: "Guide > Install", url }),
      citation(2, { title: "Guide > Update", url })
    ])
    const result = judge(asked({ expectSources: ["Update"] }), cited, [])
    expect(result).toMatchObject({ sourceCited: true, sourceAt1: true })
    expect(result.citations).toHaveLength(1)
  })
})

describe("An expected source", () => {
  it.each([
    "src_1",
    "manual",
    "MANUAL",
    "guide > install",
    "Install",
    "https://example.com/docs/page-1.md",
    "https://EXAMPLE.com/docs/page-1.md#top",
    "page-1.md",
    "docs/page-1.md",
    "/docs/page-1.md"
  ])("is named by %j", (expected) => {
    expect(matchesDocument(expected, citation(1))).toBe(true)
  })

  it.each(["src_", "man", "age-1.md", "page-2.md", "https://example.com/docs/", "page-1.md/x"])(
    "is not named by %j",
    (expected) => {
      expect(matchesDocument(expected, citation(1))).toBe(false)
    }
  )

  it("is named by the path of an uploaded file, alone or in a ZIP", () => {
    const uploaded = citation(1, { url: "upload:guide/Install.md" })
    for (const expected of ["install.md", "guide/install.md", "upload:guide/Install.md"])
      expect(matchesDocument(expected, uploaded)).toBe(true)
    expect(matchesDocument("stall.md", uploaded)).toBe(false)
  })

  it("counts as cited first by the reply's marks, and each document counts once", () => {
    const citations = [1, 2, 3, 4].map((index) => citation(index, { title: `Page ${index}` }))
    const again = citation(5, { title: "Page 4 again", url: citation(4).url })
    const text = "First [4][5], then [2], then [3] and [1]."
    const result = (expected: string) =>
      judge(asked({ expectSources: [expected] }), reply(text, [...citations, again]), [])
    expect(result("Page 4")).toMatchObject({
      sourceAt1: true,
      sourceAt3: true,
      sourceCited: true,
      passed: true
    })
    expect(result("Page 3")).toMatchObject({
      sourceAt1: false,
      sourceAt3: true,
      sourceCited: true,
      passed: true
    })
    expect(result("Page 1")).toMatchObject({
      sourceAt1: false,
      sourceAt3: false,
      sourceCited: true,
      passed: true
    })
    expect(result("Page 9")).toMatchObject({ sourceAt1: false, sourceCited: false, passed: false })
  })
})

describe("An expected fact", () => {
  it.each([
    ["Run **`npm start`**\n now [1].", "npm start now."],
    ["It takes five [2] days.", "Takes FIVE days"],
    ["It costs 15 euro and 5 cents.", "5"],
    ["退款需要五个工作日。", "五个工作日"]
  ])("%j states %j", (text, fact) => {
    expect(containsFact(text, fact)).toBe(true)
  })

  it.each([
    ["It costs 15 euro.", "5"],
    ["It costs 5.50 euro.", "5"],
    ["There are 1,500 of them.", "500"],
    ["It takes four days.", "five days"]
  ])("%j does not state %j", (text, fact) => {
    expect(containsFact(text, fact)).toBe(false)
  })
})

describe("An expected grounding", () => {
  const grounded = asked({ expectGrounding: true })
  it.each([
    [["yes"]],
    [["partly"]],
    // A statement in another language than its source has no verdict.
    [[undefined]],
    [["yes", "partly", undefined]]
  ] as const)("is met by citations that are %j", (verdicts) => {
    const citations = verdicts.map((supported, place) =>
      citation(place + 1, supported === undefined ? {} : { supported })
    )
    expect(judge(grounded, reply("So [1].", citations), [])).toMatchObject({ passed: true, problems: [] })
  })

  it("is not met by a reply without citations, or with one that is not supported", () => {
    expect(judge(grounded, reply("So."), [])).toMatchObject({
      passed: false,
      problems: ["cites nothing, and was expected to be supported by sources"]
    })
    const citations = [citation(1, { supported: "yes" }), citation(2, { supported: "no", title: "Terms" })]
    expect(judge(grounded, reply("So [1]. Then [2].", citations), [])).toMatchObject({
      passed: false,
      problems: ["not supported by what it cites: Terms"],
      grounding: 0.5
    })
    expect(judge(grounded, { error: "TURN_FAILED" }, [])).toMatchObject({ passed: false })
  })

  it("is not asked for by false", () => {
    expect(judge(asked({ expectGrounding: false }), reply("So."), [])).toMatchObject({ passed: true })
  })
})

describe("A reply that must fit a schema", () => {
  const structured = asked({ responseSchema: { type: "object" } })

  it("says what its texts say, and cites all of its citations, without marks", () => {
    const text = JSON.stringify({ steps: [{ does: 'Run "npm start"\nnow.' }], ports: [80] })
    const expected = {
      ...structured,
      expectFacts: ['run "npm start" now', "80"],
      expectSources: ["page-2.md"]
    }
    expect(judge(expected, reply(text, [citation(1), citation(2)]), [])).toMatchObject({
      passed: true,
      facts: true,
      sourceAt1: false,
      sourceAt3: true
    })
    const refusing = { ...structured, expectRefusal: true }
    expect(judge(refusing, reply('{"answer":"I do not know."}'), [])).toMatchObject({ passed: true })
    expect(judge(refusing, reply('{"answer":"I do not know."}', [citation(1)]), [])).toMatchObject({
      passed: false
    })
  })

  it("does not pass without an object, and says why", () => {
    for (const text of ["A colleague will reply here.", "[1]", "null", ""])
      expect(judge(structured, reply(text), []).problems).toEqual([
        "is no object that fits the responseSchema"
      ])
    expect(judge(structured, { error: "TURN_FAILED" }, [])).toMatchObject({
      passed: false,
      problems: ["no reply that fits the responseSchema: TURN_FAILED"]
    })
  })
})

describe("A refusal", () => {
  it.each([
    "I found nothing on that in the sources.",
    "I do not know.",
    "Sorry, the sources don't say.",
    "I could not find that.",
    "There is no information about it."
  ])("is %j", (text) => {
    expect(isRefusal(reply(text), [])).toBe(true)
  })

  it("cites nothing, and says that it is one: an answer from memory is none", () => {
    expect(isRefusal(reply("I do not know more than this [1].", [citation(1)]), [])).toBe(false)
    expect(isRefusal(reply("I do not know.", [citation(1)]), [])).toBe(true)
    expect(isRefusal(reply("Paris is the capital of France."), [])).toBe(false)
    expect(isRefusal(reply("Das weiß ich leider nicht."), [])).toBe(false)
    expect(isRefusal(reply("Das weiß ich leider nicht."), ["weiß ich leider nicht"])).toBe(true)
    // As of a variable that is not set.
    expect(isRefusal(reply("Paris is the capital of France."), ["", " ", "**"])).toBe(false)
    expect(isRefusal(reply("Je n'en sais rien."), ["n’en sais rien"])).toBe(true)
  })

  it("is what the service itself says, in every language", () => {
    for (const question of [
      "How much?",
      "Wie bitte kann ich das mit Karte?",
      "Je voudrais la carte pour vous",
      "¿Cómo puedo por favor?",
      "いくらですか",
      "كم؟"
    ])
      for (const said of [refusalFor(question), extractiveNoticesFor(question).nothingFound])
        expect(isRefusal(reply(said), [])).toBe(true)
  })

  it("passes where it is expected, and fails where an answer is", () => {
    const refused = reply("I do not know.")
    const answered = reply("Paris.")
    const passed = (expectRefusal: boolean, given: Reply) => judge(asked({ expectRefusal }), given, []).passed
    expect([passed(true, refused), passed(true, answered)]).toEqual([true, false])
    expect([passed(false, refused), passed(false, answered)]).toEqual([false, true])
  })
})

describe("A report", () => {
  const cases = Array.from({ length: 30 }, (_, place) =>
    asked({ line: place + 1, question: `Question ${place}`, expectFacts: ["yes"] })
  )
  const run = (failing: number) =>
    summarize(
      cases.map((one, place) =>
        judge(
          one,
          place < failing
            ? reply("No.")
            : reply("Yes.", [citation(1, { supported: place % 2 === 0 ? "yes" : "no" })]),
          []
        )
      )
    )

  it("counts cases, figures with their intervals, latency and tokens", () => {
    const report = summarize([
      judge(
        asked({ expectSources: ["Manual"], expectFacts: ["yes"] }),
        reply("Yes [1].", [citation(1, { supported: "yes" })]),
        []
      ),
      judge(
        asked({ expectSources: ["Other"] }),
        reply("Yes [1].", [citation(1, { supported: "no" })], { latency: 30 }),
        []
      ),
      judge(asked({ expectFacts: ["yes"] }), { error: "TURN_FAILED" }, [])
    ])
    expect(report).toMatchObject({
      cases: 3,
      passed: 1,
      failed: 2,
      errors: 1,
      figures: {
        passRate: { value: 0.3333, of: 3 },
        sourceAt1: { value: 0.5, of: 2 },
        facts: { value: 0.5, of: 2 },
        refusal: null,
        grounding: { value: 0.5, of: 2 }
      },
      latencyMs: { p50: 10, p95: 30 },
      tokens: { input: 6, output: 4 }
    })
    expect(reportText(report, null)).toContain("3 cases: 1 passed, 2 failed, 1 of them without a reply")
    expect(reportText(report, null)).toContain('expected "Other", cited "Guide > Install"')
  })

  it("says nothing of grounding where no citation is judged, and nothing of tokens that no key may see", () => {
    const report = summarize([judge(asked(), reply("Yes [1].", [citation(1)], { tokens: null }), [])])
    expect([report.figures.grounding, report.tokens]).toEqual([null, null])
  })

  it("differs from a baseline by more than noise, or not clearly", () => {
    const verdict = (before: number, after: number) =>
      compare(run(before), run(after)).changes.find(({ measure }) => measure === "passRate")?.verdict
    expect([verdict(0, 0), verdict(0, 1), verdict(1, 0)]).toEqual(["same", "same", "same"])
    expect([verdict(0, 15), verdict(15, 0)]).toEqual(["worse", "better"])
    expect(compare(run(0), run(15)).regression).toBe(true)
    expect(compare(run(0), run(1))).toMatchObject({ regression: false, broken: ["Question 0"], mended: [] })
    expect(compare(run(1), run(0))).toMatchObject({ broken: [], mended: ["Question 0"] })
  })

  it("is compared one measure after the other, so that requests are served in between", () => {
    expect([...compareInSteps(run(0), run(15))]).toHaveLength(measures.length)
  })

  it("is compared over the questions of both", () => {
    const half = { ...run(0), results: run(0).results.slice(10, 20) }
    expect(compare(half, run(10)).compared).toBe(10)
    expect(compare(half, run(10)).changes[0]).toMatchObject({ before: 1, after: 1, verdict: "same" })
    expect(compare({ ...half, results: [] }, run(10))).toMatchObject({
      compared: 0,
      changes: [],
      regression: false
    })
  })
})

describe("What publishes and plans go by", () => {
  /** The same numbers every time, from 0 to 1. */
  const numbers = () => {
    let state = 7
    return () => {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      return (state >>> 0) / 2 ** 32
    }
  }
  /** A run in which each case passes with this probability, as with a model that does not always say the same. */
  const run = (roll: () => number, cases: number, share: number) =>
    summarize(
      Array.from({ length: cases }, (_, place) => {
        const expected = { question: `q${place}`, expectSources: [], expectFacts: ["yes"] }
        return judge({ ...expected, line: place + 1 }, reply(roll() < share ? "Yes" : "No"), [])
      })
    )

  it.each([
    [10, 0.6],
    [20, 0.9],
    [50, 0.8],
    [100, 0.95]
  ])("gives a false alarm for one comparison in twenty at most: %d cases, %d passing", (cases, share) => {
    const roll = numbers()
    const alarms = Array.from({ length: 200 }, () =>
      isRegression(compareCases(run(roll, cases, share), run(roll, cases, share), byQuestion))
    )
    expect(alarms.filter((alarm) => alarm).length).toBeLessThanOrEqual(10)
  })

  it("finds a version that fails in every third case that passed before", () => {
    const roll = numbers()
    const alarms = Array.from({ length: 50 }, () =>
      isRegression(compareCases(run(roll, 60, 0.95), run(roll, 60, 0.62), byQuestion))
    )
    expect(alarms.filter((alarm) => alarm).length).toBeGreaterThanOrEqual(48)
  })
})
