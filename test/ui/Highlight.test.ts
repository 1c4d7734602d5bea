import { describe, expect, it } from "vitest"
import {
  highlightRanges,
  highlightSpans,
  withoutHighlights
} from "../../src/ui/dashboard/components/replies/highlight.ts"
import { elements } from "../../src/ui/markdown/Elements.ts"

/** As HTML, for comparison alone. */
const h = (tag: string, _props: unknown, ...children: ReadonlyArray<string>): string =>
  `<${tag}>${children.join("")}</${tag}>`

const drawn = (text: string, spans: ReadonlyArray<string>) =>
  elements<string>(highlightSpans(text, spans), { h, highlights: true }).join("")
const plain = (text: string) => elements<string>(text, { h }).join("")

const text = `# Prices

A **new chain** costs _forty euros_, see [the list](https://example.com/a(b)).

- Bells cost \`12\` euros
- Lamps too

| What | Euros |
|---|---|
| Chain | 40 |
| Bell | 12 |

\`\`\`sh
npm ci && npm start
\`\`\`

1. One
2. Two`

describe("Highlighted parts of a passage", () => {
  it.each([
    [
      "A **new chain** costs _forty euros_",
      "<mark>A </mark><strong><mark>new chain</mark></strong><mark> costs </mark><em><mark>forty euros</mark></em>"
    ],
    ["_forty euros_", "<em><mark>forty euros</mark></em>"],
    [
      "- Bells cost `12` euros",
      "<li><mark>Bells cost </mark><code><mark>12</mark></code><mark> euros</mark></li>"
    ],
    ["| Bell | 12 |", "<td><mark>Bell</mark></td><td><mark>12</mark></td>"],
    ["```sh\nnpm ci && npm start\n```", "<code><mark>npm ci && npm start</mark>"],
    ["# Prices", "<strong><mark>Prices</mark></strong>"],
    ["2. Two", "<li><mark>Two</mark></li>"]
  ])("are rendered in place: %s", (span, expected) => {
    expect(drawn(text, [span])).toContain(expected)
  })

  it("do not change the rest of the rendered text, wherever they begin and end", () => {
    const whole = plain(text)
    for (let from = 0; from < text.length; from += 1) {
      for (const length of [1, 7, 40, 200]) {
        const made = elements<string>(
          highlightRanges(text, [{ from, to: Math.min(text.length, from + length) }]),
          {
            h,
            highlights: true
          }
        ).join("")
        expect([from, length, made.replaceAll(/<\/?mark>/gu, "")]).toEqual([from, length, whole])
      }
    }
  })

  it("may overlap, and are ignored if the text does not have them", () => {
    const made = highlightSpans("One two three four.", ["two three", "three four", "five", ""])
    expect(withoutHighlights(made)).toBe("One two three four.")
    expect(drawn("One two three four.", ["two three", "three four", "five"])).toBe(
      "<p>One <mark>two</mark> <mark>three four</mark>.</p>"
    )
  })

  it("are not confused with marker characters in the text", () => {
    expect(drawn("a \uE000b\uE001 c", [])).toBe("<p>a b c</p>")
    expect(elements<string>("a \uE000b", { h }).join("")).toBe("<p>a \uE000b</p>")
  })
})
