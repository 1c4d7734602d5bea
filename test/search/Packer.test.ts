import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { sectionSteps } from "../../src/search/Blocks.ts"
import { chunkSteps, embeddingText } from "../../src/search/Packer.ts"
import { cpuMillis } from "../CpuTime.ts"
import { yielded } from "../Steps.ts"

const markdown = (content: string, title = "Guide") =>
  yielded(chunkSteps({ title, content, format: "markdown" }))
const text = (content: string) => yielded(chunkSteps({ title: "Guide", content, format: "text" }))
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
    "    ",
    "- ",
    "1. ",
    "[word](",
    "**",
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

  it("takes an underlined line for a heading, but no row below a table, an item, a quotation or several lines", () => {
    expect(
      markdown(
        "Guide\n=====\n\nfirst\n\nOpening *hours*\n---------------\nsecond\n\n### Sundays\n\nthird\n\nFees\n----\n"
      )
    ).toEqual([
      { ordinal: 0, heading: "", content: "first" },
      { ordinal: 1, heading: "Opening hours", content: "second" },
      { ordinal: 2, heading: "Opening hours > Sundays", content: "third\n\n## Fees" }
    ])
    for (const text of [
      "a | b\n---|---\n1 | 2",
      "- item\n---",
      "- item\n  more\n  ---",
      "> quoted\n---",
      "one\ntwo\n---",
      "one\n\n---\n\ntwo",
      "```\nTitle\n=====\n```",
      "Regards\n--",
      `${"x".repeat(201)}\n===`
    ])
      expect(markdown(text)).toEqual([{ ordinal: 0, heading: "", content: text }])
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

    const bare = rows.map((row) => row.slice(2, -2))
    const open = markdown(["Name | Number", "---|---", ...bare].join("\n"))
    expect(open.length).toBeGreaterThan(2)
    for (const { content } of open) expect(content.startsWith("Name | Number\n---|---\nname")).toBe(true)
    expect(open.flatMap(({ content }) => content.split("\n").slice(2))).toEqual(bare)
    expect(markdown("a | b\nc | d\n\n---|---").map(({ content }) => content)).toEqual([
      "a | b\nc | d\n\n---|---"
    ])
  })

  it("keeps indented code as code: with its indentation and blank lines, whole up to 1,600 characters", () => {
    const code = `    if (a) {\n\n      b()\n    # no heading\n${"      c()\n".repeat(90)}    }`
    expect(markdown(`Do this:\n\n${code}\n\nafter`).map(({ content }) => content)).toEqual([
      "Do this:",
      code,
      "after"
    ])
    expect(markdown("a sentence\n    that goes on")[0]?.content).toBe("a sentence\n    that goes on")
    expect(markdown("# A\n\n\tmake\n\n# B\n\ntext").map(({ content }) => content)).toEqual(["\tmake", "text"])
  })

  it("takes the indented text of notes, tabs and definitions for text, and code in it for code", () => {
    const note = [
      "!!! note",
      "",
      "    The first paragraph.",
      "",
      "    The second:",
      "",
      "        make",
      "",
      "after"
    ].join("\n")
    const kinds = (content: string) =>
      [...sectionSteps("", content, "markdown")].flatMap((section) =>
        (section?.blocks ?? []).map(({ continues, kind, text }) => [kind, text.trim(), continues])
      )
    expect(kinds(note)).toEqual([
      ["prose", "!!! note", false],
      ["prose", "The first paragraph.", true],
      ["prose", "The second:", true],
      ["code", "make", true],
      ["prose", "after", false]
    ])
    expect(kinds('=== "Linux"\n\n    ```sh\n    make\n    ```\n')).toEqual([
      ["prose", '=== "Linux"', false],
      ["code", "```sh\n    make\n    ```", true]
    ])
    expect(kinds("Port\n\n: The port.\n\n    It is free.\n\n    Defaults to 80.")).toEqual([
      ["prose", "Port", false],
      ["prose", ": The port.", false],
      ["prose", "It is free.", true],
      ["prose", "Defaults to 80.", true]
    ])
    expect(kinds("Title\n===\n\n    make")).toEqual([["code", "make", false]])
  })

  it("holds no more of a document than a few thousand blocks at a time, whatever it consists of", () => {
    const lines = {
      headings: "# a\n",
      nested: "# a\n## b\n",
      definitions: ": a\n",
      item: "  b\n\n",
      paragraphs: "c\n\n"
    }
    for (const line of Object.values(lines)) {
      const content = `- a\n\n${line.repeat(20_000)}`
      const found = [...sectionSteps("", content, "markdown")].filter((section) => section !== undefined)
      for (const { blocks } of found) expect(blocks.length).toBeLessThanOrEqual(3 * 4_096)
      const all = found
        .flatMap(({ blocks, heading }) => [heading, ...blocks.map(({ text }) => text)])
        .join(" ")
      const letter = line.trim().at(-1) ?? ""
      expect(all.split(letter).length - 1).toBeGreaterThanOrEqual(20_000)
    }
  })

  it("keeps a pre element as code, opens it again on each piece, and reads no headings in it", () => {
    const lines = Array.from({ length: 120 }, (_, place) => `# run step &lt;${place}&gt;`)
    const chunks = markdown(
      ['<pre><code class="sh">first', "", ...lines, "</code></pre>", "after"].join("\n")
    )
    expect(chunks.length).toBeGreaterThan(3)
    expect(chunks.map(({ heading }) => heading)).toEqual(chunks.map(() => ""))
    for (const { content } of chunks.slice(0, -1)) {
      expect(content.startsWith('<pre><code class="sh">')).toBe(true)
      expect(content.endsWith("</pre>")).toBe(true)
    }
    expect(markdown("<pre>one</pre>\n# Two\nthree").map(({ heading }) => heading)).toEqual(["", "Two"])
  })

  it("cuts a long list between its items and never inside one", () => {
    const item = (place: number) =>
      `- Item ${place}. It has two sentences.\n  ${"It goes on. ".repeat(place % 9)}`.trimEnd()
    const items = Array.from({ length: 60 }, (_, place) => item(place))
    const chunks = markdown(`The items are:\n${items.join("\n")}`)
    expect(chunks.length).toBeGreaterThan(2)
    expect(chunks.map(({ content }) => content).join("\n")).toBe(`The items are:\n${items.join("\n")}`)
    for (const { content } of chunks) expect(content).toMatch(/^(?:- Item|The items)/)
  })

  it("keeps what stands in an item with it: paragraphs, code, tables, lists", () => {
    const item = (place: number) =>
      [
        `${place}. Step ${place}: ${"do it well ".repeat(20)}`.trimEnd(),
        "   ```sh\n   npm start\n   ```",
        "   Then look:",
        "       indented code",
        `   - one\n   - two`
      ].join("\n\n")
    const chunks = markdown(
      `Steps:\n\n${Array.from({ length: 9 }, (_, place) => item(place + 1)).join("\n\n")}\n\nDone.`
    )
    for (let place = 1; place <= 9; place++) {
      const whole = chunks.find(({ content }) => content.includes(`Step ${place}:`))?.content ?? ""
      const [, ...after] = whole.split(`Step ${place}:`)
      const own = after.join("").split(/\n\n\d\. Step/)[0] ?? ""
      for (const part of ["npm start", "Then look:", "indented code", "- one", "- two"])
        expect(own).toContain(part)
    }
  })

  it("cuts an item that alone is longer than a chunk, between the items within it", () => {
    const inner = Array.from({ length: 40 }, (_, place) => `  - Inner ${place} has words. And more of them.`)
    const chunks = markdown(`- Outer\n${inner.join("\n")}\n- Next`)
    expect(chunks.length).toBeGreaterThan(2)
    for (const { content } of chunks) expect(content).toMatch(/^- (?:Outer|Inner|Next)/)
  })

  it("cleans headings of attributes", () => {
    const headings = [
      "# One {#one}",
      "# Two {: #two .big }",
      "# Three {:.small}",
      "# A {map}",
      "# Five {: one}"
    ]
    expect(
      markdown(headings.map((heading) => `${heading}\n\ntext`).join("\n\n")).map(({ heading }) => heading)
    ).toEqual(["One", "Two", "Three", "A {map}", "Five {: one}"])
  })

  it("cleans headings of links, anchors, tags and emphasis, and leaves code in them as it is", () => {
    const heading = (line: string) => markdown(`# Guide\n\n## ${line}\n\ntext`)[0]?.heading
    expect(heading('<a id="use"></a>Use it')).toBe("Use it")
    expect(heading("[`serve`](#serve) and [more](more.md)")).toBe("`serve` and more")
    expect(heading("Class: **Client** [#](#client) {#client}")).toBe("Class: Client")
    expect(heading("`SPOKE_DATA_DIR` or __dirname, `<script>`")).toBe(
      "`SPOKE_DATA_DIR` or __dirname, `<script>`"
    )
    expect(markdown("# [Guide](guide.md)\n\n## A\n\ntext")[0]?.heading).toBe("A")
  })

  it("shows signs of headings without the backslashes that Markdown needs, except in code", () => {
    const heading = (line: string) => markdown(`# Guide\n\n## ${line}\n\ntext`)[0]?.heading
    expect(
      ["\\_\\_main\\_\\_", "Increase work\\_mem", "2 \\* 3", "`a\\_b`", "Array\\[0\\]", "C:\\new"].map(
        heading
      )
    ).toEqual(["__main__", "Increase work_mem", "2 * 3", "`a\\_b`", "Array[0]", "C:\\new"])
  })

  it("keeps signs in headings that are part of a name", () => {
    const heading = (line: string) => markdown(`# Guide\n\n## ${line}\n\ntext`)[0]?.heading
    expect(
      ["C#", "From C to F#", "C# #", "C# {#c}", "Hours#", "Hours¶", "Array[0] access", "Hours[1]"].map(
        heading
      )
    ).toEqual(["C#", "From C to F#", "C#", "C#", "Hours", "Hours", "Array[0] access", "Hours"])
  })

  it("leaves badges out of headings, and pictures' descriptions in", () => {
    const badges = "[![Build status](https://ci.example/a.svg)](https://ci.example/) [![cover][img]][url]"
    expect(
      markdown(`## he ${badges}\n\ntext\n\n## ![Logo](logo.svg) Start\n\nmore`, "").map(
        ({ heading }) => heading
      )
    ).toEqual(["he", "Logo Start"])
  })

  it("repeats the header of a wide table without the padding of its columns", () => {
    const pad = (text: string) => text.padEnd(180)
    const rows = Array.from({ length: 12 }, (_, place) => `| ${pad(`row ${place}`)} | ${pad("x")} |`)
    const table = markdown(
      [`| ${pad("Option")} | ${pad("Effect")} |`, `|${"-".repeat(182)}|:${"-".repeat(181)}|`, ...rows].join(
        "\n"
      )
    )
    expect(table.length).toBeGreaterThan(2)
    for (const { content } of table.slice(1))
      expect(content.startsWith("| Option | Effect |\n|---|:---|\n| row ")).toBe(true)
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

  it("loses no visible character of Markdown but the marks of headings and in them", () => {
    const counted = (all: string) => {
      const counts = new Map<string, number>()
      for (const character of visible(all).replace(/[#*_¶§[\]()]/g, ""))
        counts.set(character, (counts.get(character) ?? 0) + 1)
      return counts
    }
    FastCheck.assert(
      FastCheck.property(document, (content) => {
        const chunks = markdown(content)
        const kept = counted(chunks.map((chunk) => chunk.heading + chunk.content).join(""))
        // The target of a link in a heading is one of its marks.
        const shown = content.replace(/^( {0,3}#{1,6}[ \t].*)$/gmu, (line) =>
          line.replace(/\]\([^()]*\)/gu, "]")
        )
        for (const [character, count] of counted(shown))
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

  it("holds few paragraphs of a long section at once, and cuts it as if it held them all", () => {
    const paragraphs = Array.from({ length: 20_000 }, (_, place) => `Paragraph ${place}.`)
    const content = `# Bare\n\n# Long\n\n${paragraphs.join("\n\n")}\n\n# Short\n\nWords.\n\n# Last`
    const held = [...sectionSteps("Guide", content, "markdown")].map((section) => section?.blocks.length ?? 0)
    expect(Math.max(...held)).toBeLessThanOrEqual(4_097)
    const chunks = markdown(content)
    const long = chunks.filter(({ heading }) => heading === "Long").map(({ content }) => content)
    expect(long.join("\n\n")).toBe(["# Bare", ...paragraphs].join("\n\n"))
    for (const chunk of long.slice(0, -1)) expect(chunk.length).toBeGreaterThan(780)
    expect(chunks.slice(long.length).map(({ heading, content }) => [heading, content])).toEqual([
      ["Short", "Words.\n\n# Last"]
    ])
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
    ["items", "- a\n"],
    ["items with paragraphs", "- a\n\n  b\n\n"],
    ["items in one item", "- a\n  - b\n"],
    ["numbers", "1.\n"],
    ["indented lines", "    a\n\n"],
    ["links in headings", "# [a](b)\n"],
    ["stars", "# *a \n"],
    ["marks", "\u0301\u0316"]
  ])("takes time in proportion to a megabyte of %s", (_, part) => {
    const started = cpuMillis()
    markdown(part.repeat(1_000_000 / part.length))
    expect(cpuMillis() - started).toBeLessThan(5_000)
  })

  it("puts title and headings first in what is embedded", () => {
    expect(embeddingText({ title: "Guide", heading: "A > B", content: "text" })).toBe("Guide\nA > B\ntext")
    expect(embeddingText({ title: "Guide", heading: "", content: "text" })).toBe("Guide\ntext")
  })
})
