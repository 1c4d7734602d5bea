import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { embeddingText, packMarkdown } from "../../src/search/Packer.ts"

const markdown = (content: string, title = "Guide") => packMarkdown({ title, content, format: "markdown" })
const text = (content: string) => packMarkdown({ title: "Guide", content, format: "text" })
const visible = (content: string) => content.replace(/\s/g, "")
const sentence = (words: number) => `Word${" word".repeat(words - 1)}. `

const unit = FastCheck.oneof(
  FastCheck.constantFrom(
    "\n",
    "\n\n",
    "# ",
    "## ",
    "###",
    "```",
    "~~~",
    "|",
    " ",
    ". ",
    "word",
    "é",
    "漢字",
    "𠀀",
    "\r\n",
    "\t"
  ),
  FastCheck.string({ unit: "grapheme" })
)
const document = FastCheck.array(unit, { maxLength: 400, size: "max" }).map((units) => units.join(""))

describe("Packer", () => {
  it("packs whole paragraphs up to 800 characters", () => {
    const paragraph = "x".repeat(300)
    expect(
      markdown([paragraph, paragraph, paragraph].join("\n\n")).map(({ content }) => content.length)
    ).toEqual([602, 300])
  })

  it("cuts a longer paragraph at the end of a sentence", () => {
    const chunks = markdown(sentence(50).repeat(8))
    expect(chunks.length).toBeGreaterThan(2)
    for (const { content } of chunks) expect(content).toMatch(/^Word.*\.$/)
  })

  it("cuts text without sentences at a space, and text without spaces anywhere but inside a character", () => {
    for (const { content } of markdown("word ".repeat(1_000))) expect(content).toMatch(/^(word )*word$/)
    for (const { content } of markdown("x" + "𠀀".repeat(3_000))) expect(content.isWellFormed()).toBe(true)
  })

  it("says under which headings a chunk stands, and does not repeat the title there", () => {
    const chunks = markdown(
      "intro\n# Guide\nfirst\n## Install ##\nsecond\n### Linux\nthird\n## Use\nfourth\n# Other\nfifth"
    )
    expect(chunks).toEqual([
      { ordinal: 0, heading: "", content: "intro" },
      { ordinal: 1, heading: "", content: "first" },
      { ordinal: 2, heading: "Install", content: "second" },
      { ordinal: 3, heading: "Install > Linux", content: "third" },
      { ordinal: 4, heading: "Use", content: "fourth" },
      { ordinal: 5, heading: "Other", content: "fifth" }
    ])
  })

  it("takes a # for a heading only outside code and tables and only with a space after it", () => {
    const fenced = "```sh\n# a comment\n\necho hi\n```"
    expect(markdown(`${fenced}\n\n#hashtag\n####### seven`).map(({ heading }) => heading)).toEqual([""])
    expect(markdown(fenced)[0]?.content).toBe(fenced)
    expect(markdown("~~~\n```\n# no\n~~~~\n# Yes\ntext").map(({ heading }) => heading)).toEqual(["", "Yes"])
  })

  it("keeps a fence and a table whole up to 1,600 characters and cuts longer ones at lines", () => {
    const row = `| ${"x".repeat(30)} | y |`
    const table = (rows: number) => Array.from({ length: rows }, () => row).join("\n")
    expect(markdown(`before\n\n${table(40)}\n\nafter`).map(({ content }) => content)).toEqual([
      "before",
      table(40),
      "after"
    ])
    const cut = markdown(table(100))
    expect(cut.length).toBeGreaterThan(2)
    for (const { content } of cut) for (const line of content.split("\n")) expect(line).toBe(row)
    const code = `\`\`\`\n${"  let x = 1\n".repeat(120)}\`\`\``
    expect(markdown(code).map(({ content }) => content)).toEqual([code])
  })

  it("opens a fence again on each piece of long code, and repeats the header of a long table", () => {
    const lines = Array.from({ length: 200 }, (_, place) => `let x${place} = ${place}`)
    const code = markdown(["```js", ...lines, "```"].join("\n"))
    expect(code.length).toBeGreaterThan(2)
    for (const { content } of code) expect(content).toMatch(/^```js\n(?:let x\d+ = \d+\n)+```$/)
    expect(code.flatMap(({ content }) => content.split("\n").slice(1, -1))).toEqual(lines)

    const rows = Array.from({ length: 200 }, (_, place) => `| name ${place} | ${place} |`)
    const table = markdown(["| Name | Number |", "|---|---|", ...rows].join("\n"))
    for (const { content } of table)
      expect(content.startsWith("| Name | Number |\n|---|---|\n| name")).toBe(true)
    expect(table.flatMap(({ content }) => content.split("\n").slice(2))).toEqual(rows)
  })

  it("keeps headings with nothing under them as text", () => {
    const chunks = markdown("# One\n## 1.1\n## 1.2\ntext\n## 1.3\n# Two")
    expect(chunks).toEqual([
      { ordinal: 0, heading: "One > 1.2", content: "## 1.1\n\ntext\n\n## 1.3\n\n# Two" }
    ])
    expect(markdown("# One\n## 1.1\n# Two\ntext").map(({ content }) => content)).toEqual([
      "# One\n\n## 1.1\n\ntext"
    ])
    expect(markdown("# Guide").map(({ content }) => content)).toEqual(["# Guide"])
  })

  it("finds no headings, fences or tables in plain text", () => {
    const content = "# not a heading\ntext\n```\n\n| a |"
    expect(text(content)).toEqual([
      { ordinal: 0, heading: "", content: "# not a heading\ntext\n```\n\n| a |" }
    ])
  })

  it("makes no chunk of nothing", () => {
    for (const blank of ["", " ", "\n\n\t\u00a0\n", "\r\n"]) expect(markdown(blank)).toEqual([])
  })

  it("loses no visible character of plain text and keeps their order", () => {
    FastCheck.assert(
      FastCheck.property(document, (content) => {
        expect(
          text(content)
            .map((chunk) => visible(chunk.content))
            .join("")
        ).toBe(visible(content))
      })
    )
  })

  it("loses no visible character of Markdown but the marks of headings", () => {
    const counted = (all: string) => {
      const counts = new Map<string, number>()
      for (const character of visible(all).replaceAll("#", ""))
        counts.set(character, (counts.get(character) ?? 0) + 1)
      return counts
    }
    FastCheck.assert(
      FastCheck.property(document, (content) => {
        const chunks = markdown(content)
        const kept = counted(chunks.map((chunk) => chunk.heading + chunk.content).join(""))
        for (const [character, count] of counted(content))
          expect(kept.get(character) ?? 0).toBeGreaterThanOrEqual(count)
      })
    )
  })

  it("makes chunks that are never blank nor longer than 1,600 characters, numbered from 0", () => {
    FastCheck.assert(
      FastCheck.property(document, (content) => {
        for (const [place, chunk] of markdown(content).entries()) {
          expect(chunk.ordinal).toBe(place)
          expect(chunk.content.trim()).not.toBe("")
          expect(chunk.content.length).toBeLessThanOrEqual(1_600)
          expect(chunk.content.isWellFormed()).toBe(content.isWellFormed())
        }
      })
    )
  })

  it.each([
    ["hashes", "#"],
    ["heading marks", "# "],
    ["headings", "# a\n"],
    ["backticks", "`"],
    ["fences that never close", "```a\n"],
    ["fences", "```\n"],
    ["words", "a "],
    ["no spaces", "a"],
    ["spaces", " "],
    ["dots", "1. "],
    ["pipes", "|\n"],
    ["marks", "\u0301\u0316"]
  ])("takes time in proportion to a megabyte of %s", (_, part) => {
    const started = performance.now()
    markdown(part.repeat(1_000_000 / part.length))
    expect(performance.now() - started).toBeLessThan(5_000)
  })

  it("puts title and headings first in what is embedded", () => {
    expect(embeddingText({ title: "Guide", heading: "A > B", content: "text" })).toBe("Guide\nA > B\ntext")
    expect(embeddingText({ title: "Guide", heading: "", content: "text" })).toBe("Guide\ntext")
  })
})
