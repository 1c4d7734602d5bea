/**
 * Renders Markdown as elements of React or Preact. It never creates HTML or images, and every link shows its target.
 */
import { safeHref } from "./Href.ts"
import { stablePrefix } from "./StablePrefix.ts"
import { type Block, type Cell, type Inline, parse, plainText } from "./Tree.ts"

type Props = Readonly<Record<string, string | number>>

export interface RenderOptions<N> {
  /** `createElement` of React, `h` of Preact. */
  readonly h: (tag: string, props: Props | null, ...children: ReadonlyArray<N | string>) => N
  /** Returns the element for the citation `[index]`, or null if there is none. Without it, citations are text. */
  readonly citation?: ((index: number) => N | null) | undefined
  /** The text is incomplete, because it is still being received. */
  readonly streaming?: boolean | undefined
  /** Whether text between {@link highlightStart} and {@link highlightEnd} is highlighted. */
  readonly highlights?: boolean | undefined
}

/** Private-use characters around highlighted text. No font draws them. */
export const highlightStart = "\uE000"
export const highlightEnd = "\uE001"

/** Whether the text of a link is its address. */
const isAddress = (linkText: string, href: string) => {
  const text = linkText.trim()
  return [text, `https://${text}`, `http://${text}`, `mailto:${text}`].some((one) => safeHref(one) === href)
}

const blockRenderer = <N>({ citation, h, highlights = false }: RenderOptions<N>) => {
  let isHighlighted = false
  /** Called in the order of the document, because a highlight may begin in one text and end in another. */
  const textNodes = (text: string): ReadonlyArray<N | string> =>
    highlights
      ? text.split(/([\uE000\uE001])/u).flatMap((piece): ReadonlyArray<N | string> => {
          if (piece !== highlightStart && piece !== highlightEnd) {
            return piece === "" ? [] : isHighlighted ? [h("mark", null, piece)] : [piece]
          }
          isHighlighted = piece === highlightStart
          return []
        })
      : [text]

  const isUnknownCitation = (part: Inline | undefined) =>
    citation !== undefined && part?.kind === "citation" && citation(part.index) === null

  const inlineNodes = (parts: ReadonlyArray<Inline>): ReadonlyArray<N | string> => {
    const nodes: Array<N | string> = []
    parts.forEach((part, index) => {
      if (isUnknownCitation(part)) return
      let next = index + 1
      while (isUnknownCitation(parts[next])) next += 1
      const after = parts[next]
      const isEnd = after === undefined || after.kind === "break"
      // No space is left before the punctuation that follows an unknown citation.
      const isBeforeStop =
        next > index + 1 && (isEnd || (after.kind === "text" && /^[\s.,;:!?)]/u.test(after.text)))
      nodes.push(...(isBeforeStop && part.kind === "text" ? [part.text.trimEnd()] : inlineNode(part)))
    })
    return nodes
  }

  const link = ({ bare, content, href }: Extract<Inline, { kind: "link" }>) => {
    const address = href.replace(/^mailto:/u, "")
    const text = plainText([{ kind: "paragraph", tight: true, content }])
    const addressNote = bare || isAddress(text, href) ? [] : [` (${address})`]
    const props = { href, target: "_blank", rel: "noopener noreferrer nofollow" }
    return h("a", props, ...(text.trim() === "" ? [address] : [...inlineNodes(content), ...addressNote]))
  }

  const inlineNode = (part: Inline): ReadonlyArray<N | string> => {
    switch (part.kind) {
      case "text":
        return textNodes(part.text)
      case "code":
        return [h("code", null, ...textNodes(part.text))]
      case "strong":
        return [h("strong", null, ...inlineNodes(part.content))]
      case "emphasis":
        return [h("em", null, ...inlineNodes(part.content))]
      case "struck":
        return [h("s", null, ...inlineNodes(part.content))]
      case "break":
        return [h("br", null)]
      case "link":
        return [link(part)]
      case "citation": {
        if (citation === undefined) return [`[${part.index}]`]
        const chip = citation(part.index)
        return chip === null ? [] : [chip]
      }
    }
  }

  const tableRow = (tag: "th" | "td", cells: ReadonlyArray<Cell>) =>
    h(
      "tr",
      null,
      ...cells.map(({ align, content }) => {
        // An empty cell of the head is no header: a screen reader would announce a column without a name.
        const isHeader = tag === "th" && content.length > 0
        const props = { "data-align": align, ...(isHeader ? { scope: "col" } : {}) }
        return h(isHeader ? tag : "td", props, ...inlineNodes(content))
      })
    )

  const blockNodes = (block: Block): ReadonlyArray<N | string> => {
    switch (block.kind) {
      case "paragraph":
        return block.tight ? inlineNodes(block.content) : [h("p", null, ...inlineNodes(block.content))]
      // A heading element would appear among the headings of the page.
      case "heading":
        return [h("p", { "data-part": "heading" }, h("strong", null, ...inlineNodes(block.content)))]
      case "quote":
        return [h("blockquote", null, ...block.content.flatMap(blockNodes))]
      case "code":
        return [h("pre", { tabIndex: 0 }, h("code", null, ...textNodes(block.text)))]
      case "rule":
        return [h("hr", null)]
      case "list": {
        const items = block.items.map((item) => h("li", null, ...item.flatMap(blockNodes)))
        if (block.start === null) return [h("ul", null, ...items)]
        const props = {
          ...(block.start === 1 ? {} : { start: block.start }),
          // Numbers of three digits do not fit before the items.
          ...(block.start + items.length > 100 ? { "data-part": "numbers" } : {})
        }
        return [h("ol", props, ...items)]
      }
      case "table":
        return [
          h(
            "div",
            { "data-part": "table", tabIndex: 0 },
            h(
              "table",
              null,
              h("thead", null, tableRow("th", block.head)),
              h("tbody", null, ...block.rows.map((cells) => tableRow("td", cells)))
            )
          )
        ]
    }
  }
  return blockNodes
}

/** The elements of `text`, to be passed as children. */
export const elements = <N>(text: string, options: RenderOptions<N>): ReadonlyArray<N | string> =>
  parse(options.streaming === true ? stablePrefix(text) : text).flatMap(blockRenderer(options))

/** `text` for screen readers. */
export const spoken = (text: string): string => plainText(parse(text))
