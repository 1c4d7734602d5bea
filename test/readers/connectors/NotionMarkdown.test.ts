import { describe, expect, it } from "vitest"
import { markdownOfBlocks } from "../../../src/readers/connectors/NotionMarkdown.ts"

const block = (type: string, value: unknown) => ({ type, value, children: [] })
const run = (
  text: string,
  annotations: Readonly<Record<string, boolean>> = {},
  href: string | null = null
) => ({
  plain_text: text,
  annotations,
  href
})

describe("Blocks of Notion", () => {
  it("keep white space outside of marks and links", () => {
    const runs = [
      run("Note: ", { bold: true }),
      run("see"),
      run(" the page ", {}, "https://e.org/a"),
      run("and\n", { italic: true }),
      run(" code", { code: true }),
      run("  ", { bold: true })
    ]
    expect(markdownOfBlocks([block("paragraph", { rich_text: runs })])).toBe(
      "**Note:** see [the page](https://e.org/a) *and*\n `code`  "
    )
  })

  it("keep code with fences in it together", () => {
    const code = (text: string) => block("code", { language: "markdown", rich_text: [run(text)] })
    expect(markdownOfBlocks([code("Text"), code("```sh\nls\n```")])).toBe(
      "```markdown\nText\n```\n\n````markdown\n```sh\nls\n```\n````"
    )
  })
})
