import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"
import { type Citation, judge, unjudged } from "../../src/domain/agents/evaluation/Judge.ts"
import { budgetSpent } from "../../src/usecases/billing/OtherModelCalls.ts"
import { germanResult } from "../../src/ui/dashboard/text/resultTranslations.ts"

const read = (name: string) => Fs.readFileSync(Path.resolve(import.meta.dirname, "../..", name), "utf8")

/** The sentences that the pattern's group finds in a file. */
const said = (file: string, pattern: RegExp): ReadonlyArray<string> =>
  [...read(file).matchAll(pattern)].map(([, sentence = ""]) => sentence.replaceAll(/\$\{[^}]+\}/gu, "X"))

const citation: Citation = {
  index: 1,
  sourceId: "src_1",
  sourceName: "Manual",
  title: "Install",
  url: "https://example.com/install",
  supported: "no"
}
const reply = (text: string, citations: ReadonlyArray<Citation> = []) => ({
  text,
  citations,
  latency: 1,
  tokens: null
})
const asked = (given: Partial<Parameters<typeof judge>[0]> = {}) => ({
  line: 1,
  question: "How?",
  expectSources: [],
  expectFacts: [],
  ...given
})
const verdict = (passed: boolean | null, reason: string) => ({ ...unjudged(reason), passed })
const english = /\b(?:the|and|was|not|is|does|reply|expected|model)\b/u

describe("The German dashboard", () => {
  it("translates every kind of failed check of a test case", () => {
    const responseSchema = { type: "object" }
    const results = [
      judge(asked({ expectSources: ["A", "B"], expectFacts: ["42"] }), reply("Yes. [1]", [citation]), []),
      judge(asked({ expectSources: ["A"], expectRefusal: true }), reply("Yes."), []),
      judge(asked({ expectRefusal: false, expectGrounding: true }), reply("I do not know."), []),
      judge(asked({ expectGrounding: true }), reply("Yes. [1]", [citation]), []),
      judge(asked({ responseSchema }), reply("Yes."), []),
      judge(asked({ criterion: "Polite" }), reply("Yes."), []),
      judge(asked({ criterion: "Polite" }), reply("Yes."), [], verdict(false, "Zu knapp.")),
      judge(asked({ criterion: "Polite" }), reply("Yes."), [], verdict(null, "the model failed")),
      judge(asked(), { error: "TURN_FAILED" }, []),
      judge(asked({ responseSchema }), { error: "RUNTIME_TIMEOUT: The chat runtime took too long." }, [])
    ]
    const problems = results.flatMap((result) => result.problems)
    expect(problems).toHaveLength(13)
    const german = problems.map((problem) => germanResult(problem) ?? problem)
    expect(german.filter((sentence) => english.test(sentence))).toEqual([])
    expect(german.slice(0, 3)).toEqual([
      "Erwartet war „A“ oder „B“, zitiert ist „Install“.",
      "Sagt nicht: 42",
      "Erwartet war „A“, zitiert ist nichts."
    ])
    expect(german.at(-2)).toBe("Keine Antwort: Der Agent konnte nicht antworten.")
  })

  it("leaves names as they are, also with the words and quotes of the message around them", () => {
    const names = ['Buy or "rent"', "A, cited B", "C\\", "nothing"]
    const cited = ['Cash or card", cited "', "nothing"].map((title, index) => ({
      ...citation,
      index: index + 1,
      title,
      url: `https://example.com/${index}`
    }))
    const germanOf = (expectSources: ReadonlyArray<string>, citations: ReadonlyArray<Citation>) =>
      judge(asked({ expectSources }), reply("Yes. [1][2]", citations), []).problems.map(germanResult)
    expect(germanOf(names, [])).toEqual([
      'Erwartet war „Buy or "rent"“ oder „A, cited B“ oder „C\\“ oder „nothing“, zitiert ist nichts.'
    ])
    expect(germanOf(["Buy or rent"], cited)).toEqual([
      'Erwartet war „Buy or rent“, zitiert ist „Cash or card", cited "“, „nothing“.'
    ])
  })

  it("translates why there is no reply or no verdict, and why an experiment ended", () => {
    const work = "src/usecases/agents/ExperimentWork.ts"
    const replays = "src/usecases/chat/replay"
    const sentences = [
      ...said(work, /(?:"failed", |fail\(job, |changed = |error: (?:reason \?\? )?)"([^"]+)"/gu),
      ...said(`${replays}/ReplayTurn.ts`, /diverged\(run, "([^"]+)"/gu),
      ...said(`${replays}/RecordedTools.ts`, /reason: `([^`]+)`/gu),
      ...said("src/usecases/agents/ModelAnswer.ts", /noAnswer\("([^"]+)"/gu),
      ...said("src/usecases/chat/Identity.ts", /TurnLimitExceeded\(\{ message: "([^"]+)"/gu),
      ...said("src/domain/agents/evaluation/Judge.ts", /unjudged\("([^"]+)"/gu),
      ...(["tenant", "agent", "key"] as const).map(
        (of) => budgetSpent({ of, period: "day", resetsAt: "2026-01-02T00:00:00Z" }).message
      )
    ]
    expect(sentences.length).toBeGreaterThan(15)
    expect(sentences.filter((sentence) => germanResult(sentence) === null)).toEqual([])
  })

  it("shows messages without a translation in English", () => {
    expect(germanResult("Something else happened.")).toBeNull()
    expect(germanResult("cannot be judged: Something else happened.")).toBe(
      "Nicht zu beurteilen: Something else happened."
    )
  })
})
