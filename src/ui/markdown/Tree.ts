/**
 * Parses the Markdown of replies to a tree of allowed nodes: CommonMark with GitHub's tables, strikethrough, task items
 * and bare links. HTML is text, an image is a link to it, and links lead only to http, https and mailto addresses.
 */
import MarkdownIt, { type StateBlock, type StateInline, type Token } from "markdown-it"
import { safeHref } from "./Href.ts"

export type Inline =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "strong" | "emphasis" | "struck"; readonly content: ReadonlyArray<Inline> }
  /** `bare`: the content is the address itself. */
  | {
      readonly kind: "link"
      readonly href: string
      readonly bare: boolean
      readonly content: ReadonlyArray<Inline>
    }
  /** `[3]`: the citation with index 3. */
  | { readonly kind: "citation"; readonly index: number }
  | { readonly kind: "break" }

export interface Cell {
  readonly align: "start" | "center" | "end"
  readonly content: ReadonlyArray<Inline>
}

export type Block =
  /** `tight`: an item of a list whose items are not separated by blank lines. */
  | { readonly kind: "paragraph"; readonly tight: boolean; readonly content: ReadonlyArray<Inline> }
  | { readonly kind: "heading"; readonly level: number; readonly content: ReadonlyArray<Inline> }
  /** `start` is the number of the first item; null where the items have none. */
  | {
      readonly kind: "list"
      readonly start: number | null
      readonly items: ReadonlyArray<ReadonlyArray<Block>>
    }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "quote"; readonly content: ReadonlyArray<Block> }
  | {
      readonly kind: "table"
      readonly head: ReadonlyArray<Cell>
      readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
    }
  | { readonly kind: "rule" }

/** Maximum nesting of quotes and lists. Deeper content is shown as plain text. */
const maxBlockDepth = 60
/** Maximum length in characters. Longer text is shown as plain text. */
const maxLength = 100_000
/** Maximum nesting of emphasis and links in a block. Deeper ones have no effect. */
const maxInlineDepth = 8

const citationPattern = /\[(\d{1,3})\](?!\()/uy

/** `[3]` is a citation, even if the text defines a reference of that name. */
const citationRule = (state: StateInline, silent: boolean): boolean => {
  // The parser scans silently only within the text of a link, where brackets are text.
  if (silent || state.src.charAt(state.pos) !== "[") return false
  citationPattern.lastIndex = state.pos
  const found = citationPattern.exec(state.src)
  if (found === null) return false
  state.push("citation", "", 0).content = found[1] ?? ""
  state.pos += found[0].length
  return true
}

/** `[3]: text` is not a definition of a reference, but a line that begins with a citation. */
const citationLineRule = (state: StateBlock, line: number, _end: number, silent: boolean): boolean => {
  const begin = (state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0)
  const text = state.src.slice(begin, state.eMarks[line])
  if (silent || !/^\[\d{1,3}\]:/u.test(text)) return false
  state.line = line + 1
  state.push("paragraph_open", "p", 1).map = [line, line + 1]
  const inline = state.push("inline", "", 0)
  inline.content = text.trim()
  inline.map = [line, line + 1]
  inline.children = []
  state.push("paragraph_close", "p", -1)
  return true
}

const parser = new MarkdownIt({ html: false, linkify: true, maxNesting: maxBlockDepth })
parser.validateLink = (address) => safeHref(address) !== null
// An address is not decoded for display, because it could look like another one.
parser.normalizeLinkText = (address) => address
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: true })
parser.inline.ruler.before("link", "citation", citationRule)
parser.block.ruler.before("reference", "citation_line", citationLineRule)

const wrapperKinds: Readonly<Record<string, "strong" | "emphasis" | "struck">> = {
  strong_open: "strong",
  em_open: "emphasis",
  s_open: "struck"
}

/** An element that is not closed yet: its content so far, and the function that builds it. */
interface OpenElement {
  readonly content: Array<Inline>
  readonly close: (content: ReadonlyArray<Inline>) => ReadonlyArray<Inline>
}

const attributeOf = (token: Token, name: string): string => String(token.attrGet(name) ?? "")

const textOf = (tokens: ReadonlyArray<Token>): string =>
  tokens.map(({ children, content }) => (children === null ? content : textOf(children))).join("")

/** Builds the inline content of a block from its tokens, which are passed one at a time. */
class InlineBuilder {
  readonly content: Array<Inline> = []
  private readonly openElements: Array<OpenElement> = []
  private openLinks = 0

  take(token: Token): void {
    const wrapper = wrapperKinds[token.type]
    if (wrapper !== undefined) this.open((content) => [{ kind: wrapper, content }])
    else if (token.type === "link_open") this.openLink(token)
    else if (token.nesting === -1) {
      if (token.type === "link_close") this.openLinks -= 1
      this.close()
    } else this.add(this.partOf(token))
  }

  /** Elements that are nested too deeply become part of their parent. */
  private open(close: OpenElement["close"]): void {
    const isDeep = this.openElements.length >= maxInlineDepth
    this.openElements.push({ content: [], close: isDeep ? (content) => content : close })
  }

  private openLink(token: Token): void {
    const href = safeHref(attributeOf(token, "href"))
    const bare = token.info === "auto"
    this.openLinks += 1
    this.open((content) => (href === null ? content : [{ kind: "link", href, bare, content }]))
  }

  private close(): void {
    const last = this.openElements.pop()
    if (last !== undefined) this.add(...last.close(last.content))
  }

  private add(...parts: ReadonlyArray<Inline>): void {
    const into = this.openElements.at(-1)?.content ?? this.content
    for (const part of parts) if (part.kind !== "text" || part.text !== "") into.push(part)
  }

  private partOf(token: Token): Inline {
    switch (token.type) {
      case "softbreak":
      case "hardbreak":
        return { kind: "break" }
      case "code_inline":
        return { kind: "code", text: token.content }
      case "citation":
        return this.openLinks > 0
          ? { kind: "text", text: `[${token.content}]` }
          : { kind: "citation", index: Number(token.content) }
      case "image": {
        const src = attributeOf(token, "src")
        const href = safeHref(src)
        const alt = textOf(token.children ?? [])
        const label: Inline = { kind: "text", text: alt === "" ? src : alt }
        // A link within a link is not a link.
        if (href === null || this.openLinks > 0) return label
        return { kind: "link", href, bare: alt === "", content: [label] }
      }
      default:
        return { kind: "text", text: token.content }
    }
  }
}

const inlineOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<Inline> => {
  const builder = new InlineBuilder()
  for (const token of tokens) builder.take(token)
  return builder.content
}

const checkBoxes: Readonly<Record<string, string>> = { " ": "☐", x: "☑", X: "☑" }

/** Shows `[x] done` as a checked box. */
const withCheckBox = (item: ReadonlyArray<Block>): ReadonlyArray<Block> => {
  const [first, ...rest] = item
  if (first?.kind !== "paragraph") return item
  const [label, ...others] = first.content
  const box = label?.kind === "text" ? /^\[([ xX])\] /u.exec(label.text)?.[1] : undefined
  if (label?.kind !== "text" || box === undefined) return item
  const text = `${checkBoxes[box]} ${label.text.slice("[x] ".length)}`
  return [{ ...first, content: [{ kind: "text", text }, ...others] }, ...rest]
}

const alignOf = (cell: Token): Cell["align"] => {
  const style = attributeOf(cell, "style")
  if (style.endsWith("center")) return "center"
  return style.endsWith("right") ? "end" : "start"
}

const tableOf = (tokens: ReadonlyArray<Token>): Block => {
  const rows: Array<Array<Cell>> = []
  tokens.forEach((token, index) => {
    if (token.type === "tr_open") rows.push([])
    if (token.type === "th_open" || token.type === "td_open") {
      const inline = tokens[index + 1]
      rows.at(-1)?.push({ align: alignOf(token), content: inlineOf(inline?.children ?? []) })
    }
  })
  const [head = [], ...body] = rows
  return { kind: "table", head, rows: body }
}

/** The block of `tokens`, which go from its opening token to its closing one. */
const blockOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<Block> => {
  const [first] = tokens
  if (first === undefined) return []
  const inside = () => tokens.slice(1, -1)
  switch (first.type) {
    case "paragraph_open":
      return [{ kind: "paragraph", tight: first.hidden, content: inlineOf(tokens[1]?.children ?? []) }]
    case "heading_open": {
      const content = inlineOf(tokens[1]?.children ?? [])
      return [{ kind: "heading", level: Number(first.tag.slice(1)), content }]
    }
    case "fence":
    case "code_block":
      return [{ kind: "code", text: first.content.replace(/\n$/u, "") }]
    case "hr":
      return [{ kind: "rule" }]
    case "blockquote_open":
      return [{ kind: "quote", content: blocksOf(inside()) }]
    case "bullet_list_open":
    case "ordered_list_open": {
      const items = splitBlocks(inside()).map((item) => withCheckBox(blocksOf(item.slice(1, -1))))
      const start = first.type === "ordered_list_open" ? Number(first.attrGet("start") ?? 1) : null
      return [{ kind: "list", start, items }]
    }
    case "table_open":
      return [tableOf(tokens)]
    default:
      return []
  }
}

/** The tokens of each block, or of each item. */
const splitBlocks = (tokens: ReadonlyArray<Token>): ReadonlyArray<ReadonlyArray<Token>> => {
  const found: Array<ReadonlyArray<Token>> = []
  let depth = 0
  let start = 0
  tokens.forEach(({ nesting }, index) => {
    depth += nesting
    if (depth > 0) return
    found.push(tokens.slice(start, index + 1))
    start = index + 1
  })
  return found
}

const blocksOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<Block> => splitBlocks(tokens).flatMap(blockOf)

/** The blocks of `markdown`. Time and memory are linear in its length. */
export const parse = (markdown: string): ReadonlyArray<Block> => {
  const verbatim: Block = { kind: "code", text: markdown }
  if (markdown.length > maxLength) return [verbatim]
  const tokens = parser.parse(markdown, {})
  // The parser drops content beyond its maximum nesting.
  return tokens.every(({ level }) => level < maxBlockDepth - 1) ? blocksOf(tokens) : [verbatim]
}

const inlineText = (parts: ReadonlyArray<Inline>): string => {
  const texts: Array<string> = []
  for (const part of parts) {
    if (part.kind === "break") texts.push("\n")
    // A citation is left out, with the space before it.
    else if (part.kind === "citation") texts.push((texts.pop() ?? "").trimEnd())
    else texts.push("content" in part ? inlineText(part.content) : part.text)
  }
  return texts.join("")
}

const blockText = (block: Block): string => {
  switch (block.kind) {
    case "paragraph":
    case "heading":
      return inlineText(block.content)
    case "quote":
      return plainText(block.content)
    case "code":
      return block.text
    case "rule":
      return ""
    case "list": {
      const { start } = block
      return block.items
        .map((item, index) => `${start === null ? "" : `${start + index}. `}${plainText(item)}`)
        .join("\n")
    }
    case "table":
      return [block.head, ...block.rows]
        .map((row) => row.map(({ content }) => inlineText(content)).join(", "))
        .join("\n")
  }
}

/** The text without Markdown and citations, for screen readers. */
export const plainText = (blocks: ReadonlyArray<Block>): string =>
  blocks
    .map(blockText)
    .filter((text) => text !== "")
    .join("\n")
