import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { allowAll, crawlDelay, mayFetch, pageRules, parseRobots } from "../../src/readers/Robots.ts"

const may = (text: string, path: string, agent = "SpokeBot") =>
  mayFetch(parseRobots(text), agent, `https://a.example${path}`)

const everybody = (...rules: ReadonlyArray<string>) => ["User-agent: *", ...rules].join("\n")

describe("robots.txt", () => {
  const table: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, boolean]> = [
    ["no rule allows everything", [], "/a", true],
    ["an empty disallow allows everything", ["Disallow:"], "/a", true],
    ["a slash disallows everything", ["Disallow: /"], "/a", false],
    ["a rule is a prefix", ["Disallow: /fish"], "/fishheads/yummy.html", false],
    ["a prefix is compared with its case", ["Disallow: /fish"], "/Fish.asp", true],
    ["a prefix begins at the root", ["Disallow: /fish"], "/catfish", true],
    ["a folder does not include its name", ["Disallow: /fish/"], "/fish", true],
    ["the longest match decides", ["Allow: /p", "Disallow: /"], "/page", true],
    ["the longest match decides in any order", ["Disallow: /page/x", "Allow: /page"], "/page/x/y", false],
    ["allow wins a tie", ["Disallow: /folder", "Allow: /folder"], "/folder/page", true],
    ["a star stands for anything", ["Disallow: /*.php"], "/folder/any.php.file", false],
    ["a star stands for nothing, too", ["Disallow: /a*b"], "/ab", false],
    ["a dollar is the end", ["Disallow: /*.php$"], "/a.php?x", true],
    ["a dollar matches at the end", ["Disallow: /*.php$"], "/a.php", false],
    ["a dollar without a star is the whole path", ["Disallow: /a$"], "/a", false],
    ["a dollar without a star is no prefix", ["Disallow: /a$"], "/ab", true],
    ["a dollar finds the last occurrence", ["Disallow: /*a$"], "/aba", false],
    ["a dollar elsewhere is a character", ["Disallow: /a$b"], "/a$bc", false],
    ["the length counts stars", ["Allow: /page", "Disallow: /*.htm"], "/page.htm", false],
    ["queries count", ["Disallow: /*?session="], "/a?session=1", false],
    ["escapes are compared in one form", ["Disallow: /a%3cd"], "/a%3Cd", false],
    ["escaped letters are letters", ["Disallow: /%61bc"], "/abc", false],
    ["other alphabets are compared escaped", ["Disallow: /\u00fcber"], "/%C3%BCber/x", false],
    ["an escaped slash is no slash", ["Disallow: /a/b"], "/a%2Fb", true],
    ["comments are passed over", ["Disallow: /a # not this"], "/a", false],
    ["robots.txt itself may always be read", ["Disallow: /"], "/robots.txt", true]
  ]
  for (const [sentence, rules, path, expected] of table) {
    it(`In robots.txt ${sentence}`, () => expect(may(everybody(...rules), path)).toBe(expected))
  }

  it("The group that names the agent counts instead of the one for everybody", () => {
    const text = "User-agent: *\nDisallow: /\n\nUser-agent: spokebot/2.0\nDisallow: /private"
    expect([may(text, "/a"), may(text, "/private/a"), may(text, "/a", "OtherBot")]).toEqual([
      true,
      false,
      false
    ])
  })

  it("Several agents share a group, and groups of one agent count as one", () => {
    const text =
      "user-agent: x\nUSER-AGENT: SpokeBot\ndisallow: /a\nuser-agent: y\ndisallow: /y\nuser-agent: spokebot\ndisallow: /b"
    expect(["/a", "/b", "/y"].map((path) => may(text, path))).toEqual([false, false, true])
  })

  it("Rules before any group, unknown fields and broken lines are passed over", () => {
    const text = "\uFEFFDisallow: /\nnonsense\nUser-agent: *\r\nNoindex: /x\rDisallow: /b\nHost"
    expect([may(text, "/a"), may(text, "/b")]).toEqual([true, false])
  })

  it("A group's crawl-delay and the file's sitemaps are read", () => {
    const robots = parseRobots(
      "Sitemap: https://a.example/s.xml\nUser-agent: *\nCrawl-delay: 2.5\nUser-agent: z\nCrawl-delay: x"
    )
    expect(crawlDelay(robots, "SpokeBot")).toBe(2.5)
    expect(crawlDelay(robots, "z")).toBe(0)
    expect(robots.sitemaps).toEqual(["https://a.example/s.xml"])
    expect(crawlDelay(allowAll, "SpokeBot")).toBe(0)
  })

  const piece = FastCheck.constantFrom("a", "b", "/", "*", "$", "aa", "ab")
  const path = FastCheck.array(FastCheck.constantFrom("a", "b", "/"), { maxLength: 8 }).map(
    (parts) => `/${parts.join("")}`
  )
  const rule = FastCheck.record({
    allow: FastCheck.boolean(),
    path: FastCheck.array(piece, { maxLength: 6 }).map((parts) => `/${parts.join("")}`)
  })
  /** RFC 9309 in as few words as possible. */
  const reference = (rules: ReadonlyArray<{ allow: boolean; path: string }>, target: string): boolean => {
    const expression = (pattern: string) => {
      const anchored = pattern.endsWith("$")
      const source = (anchored ? pattern.slice(0, -1) : pattern).replace(/[$]/g, "\\$&").replace(/\*/g, ".*")
      return new RegExp(`^${source}${anchored ? "$" : ""}`)
    }
    const matching = rules.filter((candidate) => expression(candidate.path).test(target))
    const longest = Math.max(0, ...matching.map((candidate) => candidate.path.length))
    const decisive = matching.filter((candidate) => candidate.path.length === longest)
    return decisive.length === 0 || decisive.some(({ allow }) => allow)
  }

  it("Any rules decide as RFC 9309 says", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(rule, { maxLength: 5 }), path, (rules, target) => {
        const url = new URL(`https://a.example${target}`)
        FastCheck.pre(url.host === "a.example" && url.pathname === target)
        const lines = rules.map(({ allow, path: pattern }) => `${allow ? "Allow" : "Disallow"}: ${pattern}`)
        expect(may(everybody(...lines), target)).toBe(reference(rules, target))
      }),
      { numRuns: 2_000 }
    )
  })

  it("A robots.txt of half a megabyte of stars is no danger", () => {
    const robots = parseRobots(everybody(`Disallow: /${"*a".repeat(250_000)}$`))
    expect(mayFetch(robots, "SpokeBot", `https://a.example/${"a".repeat(2_000)}`)).toBe(true)
  })
})

describe("The rules of a page about itself", () => {
  const table: ReadonlyArray<readonly [string, ReadonlyArray<string>, string]> = [
    ["are none without values", [], ""],
    ["allow what they do not name", ["all", "index, follow", "noarchive, max-snippet:0", ""], ""],
    ["are found in any case and with any spaces", [" NoIndex ,NOFOLLOW"], "noindex nofollow"],
    ["none stands for both", ["none"], "noindex nofollow"],
    ["the strictest of several values counts", ["all", "nofollow", "index, noindex"], "noindex nofollow"],
    ["those for another agent are left out", ["otherbot: noindex, nofollow"], ""],
    ["those for our agent count", ["otherbot: noindex, SpokeBot: nofollow"], "nofollow"],
    [
      "a rule with a value is no agent",
      ["noindex, unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow"],
      "noindex nofollow"
    ],
    ["a longer word is another one", ["noindexing, donofollow"], ""]
  ]
  for (const [name, values, expected] of table)
    it(name, () => {
      const { nofollow, noindex } = pageRules("SpokeBot", values)
      expect([noindex ? "noindex" : "", nofollow ? "nofollow" : ""].join(" ").trim()).toBe(expected)
    })
})
