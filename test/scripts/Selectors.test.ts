/** The selectors that the parser's thread keeps answer as those that are made anew for each question. */
import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { parseHTML } from "linkedom"

interface Node {
  readonly nodeType: number
  readonly parentNode: Node | null
  readonly childNodes: Iterable<Node>
}
interface Element extends Node {
  readonly localName: string
  readonly classList: { readonly value: string }
  readonly getAttribute: (name: string) => string | null
  readonly hasAttribute: (name: string) => boolean
  readonly setAttribute: (name: string, value: string) => void
  readonly matches: (selector: string) => boolean
  readonly append: (child: Element) => void
  readonly contains: (other: Element) => boolean
}

interface Options {
  readonly xmlMode: boolean
  readonly adapter: Readonly<Record<string, unknown>>
  readonly context?: Element
}
const kept: {
  readonly is: (element: Element, selector: string, options: Options) => boolean
} = await import(new URL("../../scripts/selectors.mjs", import.meta.url).href)

const isTag = ({ nodeType }: Node): boolean => nodeType === 1
const isElement = (node: Node): node is Element => isTag(node)
const existsOne = (test: (element: Element) => boolean, nodes: Iterable<Node>): boolean =>
  [...nodes].some((node) => isElement(node) && (test(node) || existsOne(test, node.childNodes)))
const getSiblings = ({ parentNode }: Node) => (parentNode === null ? [] : [...parentNode.childNodes])
const options: Options = {
  xmlMode: false,
  adapter: {
    isTag,
    existsOne,
    getSiblings,
    getAttributeValue: (element: Element, name: string) =>
      name === "class" ? element.classList.value : element.getAttribute(name),
    getChildren: ({ childNodes }: Node) => [...childNodes],
    getName: ({ localName }: Element) => localName,
    getParent: ({ parentNode }: Node) => parentNode,
    hasAttrib: (element: Element, name: string) => element.hasAttribute(name)
  }
}

const selectors = [
  "p",
  "*",
  "DIV, .note",
  "div p",
  "div.note > p",
  'p[title="a, b"], .note p, #one',
  "p, div .note, [title], section > p",
  ".note + p",
  "p + .other, div + section > p",
  "section p + p",
  "p ~ .other",
  "p:not(.note)",
  "div:not(.note, [title])",
  "section:not(.other) p, p",
  ":has(p), .note",
  'div[class*="not"], section[title^="a"] div',
  "p:first-child",
  "  .note ,\n .other\t"
] as const

const word = FastCheck.constantFrom("", "note", "other", "note other")
const shape = FastCheck.record({
  elements: FastCheck.array(
    FastCheck.record({
      name: FastCheck.constantFrom("div", "p", "section"),
      parent: FastCheck.nat(20),
      class: word,
      title: FastCheck.constantFrom("", "a, b", "a")
    }),
    { minLength: 1, maxLength: 12 }
  ),
  moves: FastCheck.array(
    FastCheck.record({ which: FastCheck.nat(11), parent: FastCheck.nat(11), class: word }),
    {
      maxLength: 6
    }
  )
})

const check = (all: ReadonlyArray<Element>) => {
  for (const selector of selectors) {
    for (const element of all) {
      expect(kept.is(element, selector, options), `${selector} of ${element.localName}`).toBe(
        element.matches(selector)
      )
    }
  }
}

describe("Selectors that are kept", () => {
  it.prop(
    "answer as new ones do, on every document and after every change of it",
    { page: shape },
    ({ page }) => {
      const { document } = parseHTML("<html><body></body></html>")
      const all: Array<Element> = []
      for (const made of page.elements) {
        const element: Element = document.createElement(made.name)
        if (made.class !== "") element.setAttribute("class", made.class)
        if (made.title !== "") element.setAttribute("title", made.title)
        const parent: Element = all[made.parent % Math.max(1, all.length)] ?? document.body
        parent.append(element)
        all.push(element)
      }
      check(all)
      for (const { class: named, parent, which } of page.moves) {
        const [moved, to] = [all[which % all.length], all[parent % all.length]]
        moved?.setAttribute("class", named)
        if (moved !== undefined && to !== undefined && !moved.contains(to)) to.append(moved)
        check(all)
      }
    },
    { fastCheck: { numRuns: 60 } }
  )

  it("refuse what is no selector each time", () => {
    const { document } = parseHTML("<html><body><p></p></body></html>")
    for (const selector of ["p,,a", "p[", ":nonsense(", "p, a b["]) {
      expect(() => kept.is(document.body, selector, options)).toThrow(Error)
      expect(() => kept.is(document.body, selector, options)).toThrow(Error)
    }
  })

  it("are compiled anew where they depend on who asks", () => {
    const { document } = parseHTML("<html><body><p></p><div><p></p></div></body></html>")
    const [first, second]: ReadonlyArray<Element> = document.querySelectorAll("p")
    if (first === undefined || second === undefined) throw new Error("Two paragraphs are there.")
    const inside = (element: Element, context: Element) =>
      kept.is(element, ":scope > p", { ...options, context })
    expect([inside(first, document.body), inside(second, document.body)]).toEqual([true, false])
    const div: Element = document.querySelector("div")
    expect([inside(first, div), inside(second, div)]).toEqual([false, true])
  })
})
