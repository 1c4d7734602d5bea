import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"

const elements = new Set(
  "div p strong em code pre br a ul ol li blockquote table thead tbody tr th td".split(" ")
)
const attributes = new Set(["href", "rel", "target", "class", "children"])

/** The element tree that the reply becomes, looked at piece by piece. */
const visit = (
  node: unknown,
  see: (name: string, props: Readonly<Record<string, unknown>>) => void
): void => {
  if (Array.isArray(node)) return node.forEach((child) => visit(child, see))
  if (typeof node !== "object" || node === null || !("type" in node) || !("props" in node)) return
  const props = Object.fromEntries(Object.entries(node.props ?? {}))
  if (typeof node.type === "function") return visit(node.type(props), see)
  // A fragment has no name of its own.
  if (typeof node.type === "string") see(node.type, props)
  visit(props["children"], see)
}

const piece = FastCheck.constantFrom(
  "![x](https://evil.example/a.png)",
  "<img src=x onerror=alert(1)>",
  "[a](javascript:alert(1))",
  "[a](data:text/html,x)",
  "[a](https://example.com/x)",
  "<script>",
  "**",
  "*",
  "`",
  "\n```\n",
  "\n- ",
  "\n> ",
  "\n| a | b |\n|---|---|\n",
  "[1]",
  "https://example.com",
  "\n"
)

describe("A reply in the widget", () => {
  it("becomes allowed elements with allowed attributes alone, whatever a model writes (G33)", async () => {
    // Its types belong to the browser's configuration.
    const file: string = "../../src/ui/widget/Prose.tsx"
    const { Prose } = await import(file)
    const text = FastCheck.array(FastCheck.oneof(piece, FastCheck.string()), { maxLength: 20 })
    FastCheck.assert(
      FastCheck.property(text, (pieces) => {
        visit(Prose({ text: pieces.join("") }), (name, props) => {
          expect(elements).toContain(name)
          for (const attribute of Object.keys(props)) expect(attributes).toContain(attribute)
          if ("href" in props) expect(props["href"]).toMatch(/^(?:https?:\/\/|mailto:)/u)
        })
      }),
      { numRuns: 1_000 }
    )
  })
})
