/**
 * Renders the tree of a reply as elements of React or Preact: never HTML, no images, and every link shows its target.
 */
import { safeHref } from "./Href.ts"
import { settled } from "./Streamed.ts"
import { type Block, type Cell, type Inline, parse, plainText } from "./Tree.ts"

type Props = Readonly<Record<string, string | number>>

export interface Drawing<N> {
  /** `createElement` of React, `h` of Preact. */
  readonly h: (tag: string, props: Props | null, ...children: ReadonlyArray<N | string>) => N
  /** The element for `[index]`; null for a mark without a citation. Without it marks are text. */
  readonly citation?: ((index: number) => N | null) | undefined
  /** More is to come. */
  readonly streaming?: boolean | undefined
  /** Whether text between {@link markStart} and {@link markEnd} is marked. */
  readonly marks?: boolean | undefined
}

/** Characters for private use, which no font draws. */
export const markStart = "\uE000"
export const markEnd = "\uE001"

/** Whether the text of a link is its address. */
const isAddress = (words: string, href: string) => {
  const text = words.trim()
  return [text, `https://${text}`, `http://${text}`, `mailto:${text}`].some((one) => safeHref(one) === href)
}

const drawn = <N>({ citation, h, marks = false }: Drawing<N>) => {
  let isMarked = false
  /** A text, in the order of the document: what is marked may begin in one and end in another. */
  const lit = (text: string): ReadonlyArray<N | string> =>
    marks
      ? text.split(/([\uE000\uE001])/u).flatMap((piece): ReadonlyArray<N | string> => {
          if (piece !== markStart && piece !== markEnd) {
            return piece === "" ? [] : isMarked ? [h("mark", null, piece)] : [piece]
          }
          isMarked = piece === markStart
          return []
        })
      : [text]

  const isUnknown = (part: Inline | undefined) =>
    citation !== undefined && part?.kind === "citation" && citation(part.index) === null

  const words = (all: ReadonlyArray<Inline>): ReadonlyArray<N | string> => {
    const made: Array<N | string> = []
    all.forEach((part, place) => {
      if (isUnknown(part)) return
      let next = place + 1
      while (isUnknown(all[next])) next += 1
      const after = all[next]
      const isEnd = after === undefined || after.kind === "break"
      // Removing an unknown mark leaves no gap before the full stop.
      const closes =
        next > place + 1 && (isEnd || (after.kind === "text" && /^[\s.,;:!?)]/u.test(after.text)))
      made.push(...(closes && part.kind === "text" ? [part.text.trimEnd()] : word(part)))
    })
    return made
  }

  const link = ({ bare, content, href }: Extract<Inline, { kind: "link" }>) => {
    const shown = href.replace(/^mailto:/u, "")
    const text = plainText([{ kind: "paragraph", tight: true, content }])
    const where = bare || isAddress(text, href) ? [] : [` (${shown})`]
    const props = { href, target: "_blank", rel: "noopener noreferrer nofollow" }
    return h("a", props, ...(text.trim() === "" ? [shown] : [...words(content), ...where]))
  }

  const word = (part: Inline): ReadonlyArray<N | string> => {
    switch (part.kind) {
      case "text":
        return lit(part.text)
      case "code":
        return [h("code", null, ...lit(part.text))]
      case "strong":
        return [h("strong", null, ...words(part.content))]
      case "emphasis":
        return [h("em", null, ...words(part.content))]
      case "struck":
        return [h("s", null, ...words(part.content))]
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

  const row = (tag: "th" | "td", cells: ReadonlyArray<Cell>) =>
    h(
      "tr",
      null,
      ...cells.map(({ align, content }) => {
        // An empty cell of the head is no header: a screen reader would announce a column without a name.
        const isHeader = tag === "th" && content.length > 0
        const props = { "data-align": align, ...(isHeader ? { scope: "col" } : {}) }
        return h(isHeader ? tag : "td", props, ...words(content))
      })
    )

  const element = (block: Block): ReadonlyArray<N | string> => {
    switch (block.kind) {
      case "paragraph":
        return block.tight ? words(block.content) : [h("p", null, ...words(block.content))]
      // A heading element would appear among the headings of the page.
      case "heading":
        return [h("p", { "data-part": "heading" }, h("strong", null, ...words(block.content)))]
      case "quote":
        return [h("blockquote", null, ...block.content.flatMap(element))]
      case "code":
        return [h("pre", { tabIndex: 0 }, h("code", null, ...lit(block.text)))]
      case "rule":
        return [h("hr", null)]
      case "list": {
        const items = block.items.map((item) => h("li", null, ...item.flatMap(element)))
        if (block.start === null) return [h("ul", null, ...items)]
        const props = {
          ...(block.start === 1 ? {} : { start: block.start }),
          // Numbers for which there is no room before the items.
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
              h("thead", null, row("th", block.head)),
              h("tbody", null, ...block.rows.map((cells) => row("td", cells)))
            )
          )
        ]
    }
  }
  return element
}

/** The elements of `text`, to be passed as children. */
export const elements = <N>(text: string, drawing: Drawing<N>): ReadonlyArray<N | string> =>
  parse(drawing.streaming === true ? settled(text) : text).flatMap(drawn(drawing))

/** `text` for screen readers. */
export const spoken = (text: string): string => plainText(parse(text))
