import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { type Block, blocks, type Inline, inline, safeHref } from "../../src/ui/Markdown.ts"

const text = (parts: ReadonlyArray<Inline>): string =>
  parts
    .map((part) => {
      if (part.kind === "break") return "\n"
      if (part.kind === "citation") return `[${part.index}]`
      return "content" in part ? text(part.content) : part.text
    })
    .join("")

const all = (block: Block): ReadonlyArray<Inline> => {
  if (block.kind === "list") return block.items.flat()
  if (block.kind === "table") return [...block.head, ...block.rows.flat()].flat()
  return block.kind === "code" ? [] : block.content
}

const deep = (parts: ReadonlyArray<Inline>): ReadonlyArray<Inline> =>
  parts.flatMap((part) => ("content" in part ? [part, ...deep(part.content)] : [part]))

describe("The Markdown of replies", () => {
  it("knows paragraphs, lists, code, quotes, tables, headings and citations", () => {
    const found = blocks(
      "# Hours\nOpen **daily** [1], see *below*\n\n- one\n- `two`\n  more\n1. first\n\n```js\nconst a = 1\n```\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    expect(found.map(({ kind }) => kind)).toEqual(["heading", "paragraph", "list", "code", "quote", "table"])
    expect(found[1]).toEqual({
      kind: "paragraph",
      content: [
        { kind: "text", text: "Open " },
        { kind: "strong", content: [{ kind: "text", text: "daily" }] },
        { kind: "text", text: " " },
        { kind: "citation", index: 1 },
        { kind: "text", text: ", see " },
        { kind: "emphasis", content: [{ kind: "text", text: "below" }] }
      ]
    })
  })

  it("links to the web and to mailboxes alone, and makes text of images and of every other scheme", () => {
    for (const address of [
      "javascript:alert(1)",
      "JAVASCRIPT://x",
      "data:text/html,x",
      "file:///etc/passwd",
      "//evil.example",
      "vbscript:x",
      " https://a b"
    ]) {
      expect(safeHref(address)).toBeNull()
      expect(deep(inline(`[x](${address})`)).filter(({ kind }) => kind === "link")).toEqual([])
    }
    expect(inline("![](https://evil.example/leak?q=1)").some(({ kind }) => kind === "link")).toBe(true)
    expect(inline("see https://a.example/b.").at(1)).toEqual({
      kind: "link",
      href: "https://a.example/b",
      text: "https://a.example/b"
    })
  })

  it("takes the underscores of names for what they are", () => {
    expect(inline("_Set OPENAI_API_KEY first._")).toEqual([
      { kind: "emphasis", content: [{ kind: "text", text: "Set OPENAI_API_KEY first." }] }
    ])
    expect(inline("a_b and c_d")).toEqual([{ kind: "text", text: "a_b and c_d" }])
  })

  it("shows what was streamed so far, an open fence as code", () => {
    expect(blocks("Look:\n```\nhalf")).toEqual([
      { kind: "paragraph", content: [{ kind: "text", text: "Look:" }] },
      { kind: "code", text: "half" }
    ])
  })

  const marks = ["**", "*", "_", "`", "[", "](", ")", "![", "<script>", "<img src=x onerror=1>", "[1]"]
  const lines = ["\n", "\n\n", "- ", "1. ", "# ", "> ", "|", " ", "word"]
  const written = (pieces: ReadonlyArray<string>) =>
    FastCheck.array(FastCheck.constantFrom(...pieces), { maxLength: 60 }).map((all) => all.join(""))

  it("links nothing that is not safe, whatever is written", () => {
    const pieces = [...marks, ...lines, "```\n", "|---|", "javascript:alert(1)", "https://a.example"]
    FastCheck.assert(
      FastCheck.property(written(pieces), (markdown) => {
        for (const part of blocks(markdown).flatMap((block) => deep(all(block)))) {
          if (part.kind === "link") expect(part.href).toMatch(/^https:\/\/a\.example/)
        }
      }),
      { numRuns: 3_000 }
    )
  })

  it("loses no word of what is written outside fences", () => {
    const words = (said: string) => said.match(/word|script|onerror/g)?.length ?? 0
    FastCheck.assert(
      FastCheck.property(written([...marks, ...lines]), (markdown) => {
        FastCheck.pre(!markdown.includes("```"))
        const shown = blocks(markdown).map((block) => text(all(block)))
        expect(words(shown.join(" "))).toBe(words(markdown))
      }),
      { numRuns: 3_000 }
    )
  })

  it("takes time in proportion to what is written", () => {
    for (const nasty of [
      "*".repeat(50_000),
      "[".repeat(50_000),
      "`a".repeat(25_000),
      "_a*b".repeat(12_000),
      "|".repeat(50_000)
    ]) {
      const begun = performance.now()
      blocks(nasty)
      expect(performance.now() - begun).toBeLessThan(5_000)
    }
  })
})
