import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { makeUrlFilter } from "../../src/readers/Glob.ts"

const site = "https://a.example"
const matchesGlob = (url: string, pattern: string) =>
  makeUrlFilter({ includePatterns: [pattern] })(url).included

describe("includePatterns and excludePatterns", () => {
  const table: ReadonlyArray<readonly [string, string, boolean]> = [
    ["https://a.example/", "/", true],
    ["https://a.example/docs", "/docs", true],
    ["https://a.example/docs", "/docs/a", false],
    ["https://a.example/docs*", "/docs/a/b", true],
    ["https://a.example/docs/*", "/docs/a/b", true],
    ["https://a.example/docs/**", "/docs/a/b", true],
    ["https://a.example/docs/*", "/docs", false],
    ["*/docs/*", "/docs/a", true],
    ["*/docs/*", "/en/docs/a", true],
    ["**/docs/**", "/en/docs/a", true],
    ["*.html", "/a/b.html", true],
    ["*.html", "/a/b.html?x=1", false],
    ["*?page=*", "/list?page=2", true],
    ["https://a.example/v?/x", "/v2/x", true],
    ["https://a.example/v?/x", "/v22/x", false],
    ["*/Docs/*", "/docs/a", false],
    ["https://*.example/a", "/a", true],
    ["/docs/*", "/docs/a", true],
    ["/docs/*", "/en/docs/a", false],
    ["docs", "/docs", false],
    ["*", "/anything", true],
    ["*a.b*", "/axb", false],
    ["*[ab]*", "/a", false],
    ["https://a.example/café/*", "/caf%C3%A9/a", true],
    ["https://a.example/café/*", "/caf%c3%a9/a", true],
    ["https://a.example/caf%C3%A9/*", "/café/a", true],
    ["*/büro plan/*", "/büro plan/a", true],
    ["/開く?q=駅*", "/開く?q=駅前", true],
    ["*/café", "/cafe", false],
    ["*/\ud800", "/%EF%BF%BD", true]
  ]
  for (const [pattern, path, expected] of table) {
    it(`The glob ${pattern} ${expected ? "matches" : "does not match"} ${path}`, () =>
      expect(matchesGlob(site + path, pattern)).toBe(expected))
  }

  it("Exclude wins over include, and without include everything else is in", () => {
    const sources = [
      {},
      { includePatterns: ["*/blog/*"] },
      { excludePatterns: ["*/private/*"] },
      { includePatterns: ["*/blog/*"], excludePatterns: ["*/private/*"] },
      { includePatterns: ["*/blog/*", "*/shop"], excludePatterns: ["*"] }
    ]
    const included = ["/blog/a", "/blog/private/b", "/shop"].map((path) =>
      sources.map((patterns) => makeUrlFilter(patterns)(site + path).included)
    )
    expect(included).toEqual([
      [true, true, true, true, false],
      [true, true, false, false, false],
      [true, false, true, false, false]
    ])
  })

  it("A pattern is reported as it is written", () => {
    expect(makeUrlFilter({ excludePatterns: ["/über*"] })(`${site}/%C3%BCber-uns`)).toEqual({
      included: false,
      reason: "excluded",
      pattern: "/über*"
    })
  })

  it("Any glob matches what the same pattern matches as a regular expression", () => {
    const pattern = FastCheck.array(FastCheck.constantFrom("a", "b", "*", "?", "/", "."), { maxLength: 8 })
    const path = FastCheck.array(FastCheck.constantFrom("a", "b", "c/", ".x"), { maxLength: 8 })
    FastCheck.assert(
      FastCheck.property(pattern, path, (marks, parts) => {
        const url = new URL(`/${parts.join("")}`, site).href
        const glob = `${site}/${marks.join("")}`
        const source = glob.replace(/[.]/g, "\\.").replace(/\*+/g, ".*").replace(/\?/g, ".")
        expect(matchesGlob(url, glob)).toBe(new RegExp(`^${source}$`).test(url))
      }),
      { numRuns: 3_000 }
    )
  })

  it("A pattern of a thousand stars is no danger", () => {
    expect(matchesGlob(`${site}/${"a".repeat(2_000)}`, `${"*a".repeat(500)}*b`)).toBe(false)
  })
})
