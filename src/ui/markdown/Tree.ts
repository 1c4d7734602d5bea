/**
 * Parses the Markdown of replies to a tree of allowed nodes: CommonMark with GitHub's tables, strikethrough, task
 * items and bare links. HTML is text, an image is a link to it, and links lead only to the web or to a mailbox.
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
  /** `tight`: of a list whose items are no paragraphs of their own. */
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
/** Maximum levels of emphasis within a run of text. Deeper ones have no effect. */
const maxInlineDepth = 8

const markPattern = /\[(\d{1,3})\](?!\()/uy

/** `[3]` is a citation's mark, even if a reference of that name is defined. */
const mark = (state: StateInline, silent: boolean): boolean => {
  // Only the text of a link is skipped silently. Brackets in it are text.
  if (silent || state.src.charAt(state.pos) !== "[") return false
  markPattern.lastIndex = state.pos
  const found = markPattern.exec(state.src)
  if (found === null) return false
  state.push("mark", "", 0).content = found[1] ?? ""
  state.pos += found[0].length
  return true
}

/** `[3]: words` is not a definition but a line that begins with a mark. */
const markLine = (state: StateBlock, line: number, _end: number, silent: boolean): boolean => {
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
parser.inline.ruler.before("link", "mark", mark)
parser.block.ruler.before("reference", "mark_line", markLine)

const wraps: Readonly<Record<string, "strong" | "emphasis" | "struck">> = {
  strong_open: "strong",
  em_open: "emphasis",
  s_open: "struck"
}

/** An open element: its content, and the function that builds it when it is closed. */
interface Open {
  readonly content: Array<Inline>
  readonly close: (content: ReadonlyArray<Inline>) => ReadonlyArray<Inline>
}

const attributeOf = (token: Token, name: string): string => String(token.attrGet(name) ?? "")

const textOf = (tokens: ReadonlyArray<Token>): string =>
  tokens.map(({ children, content }) => (children === null ? content : textOf(children))).join("")

/** One at a time: what opens, closes or is a part of a run of text. */
class Run {
  readonly content: Array<Inline> = []
  private readonly opened: Array<Open> = []
  private links = 0

  take(token: Token): void {
    const wrap = wraps[token.type]
    if (wrap !== undefined) this.open((content) => [{ kind: wrap, content }])
    else if (token.type === "link_open") this.openLink(token)
    else if (token.nesting === -1) {
      if (token.type === "link_close") this.links -= 1
      this.close()
    } else this.add(this.partOf(token))
  }

  /** Elements that are nested too deeply become part of their parent. */
  private open(close: Open["close"]): void {
    const isDeep = this.opened.length >= maxInlineDepth
    this.opened.push({ content: [], close: isDeep ? (content) => content : close })
  }

  private openLink(token: Token): void {
    const href = safeHref(attributeOf(token, "href"))
    const bare = token.info === "auto"
    this.links += 1
    this.open((content) => (href === null ? content : [{ kind: "link", href, bare, content }]))
  }

  private close(): void {
    const last = this.opened.pop()
    if (last !== undefined) this.add(...last.close(last.content))
  }

  private add(...parts: ReadonlyArray<Inline>): void {
    const into = this.opened.at(-1)?.content ?? this.content
    for (const part of parts) if (part.kind !== "text" || part.text !== "") into.push(part)
  }

  private partOf(token: Token): Inline {
    switch (token.type) {
      case "softbreak":
      case "hardbreak":
        return { kind: "break" }
      case "code_inline":
        return { kind: "code", text: token.content }
      case "mark":
        return this.links > 0
          ? { kind: "text", text: `[${token.content}]` }
          : { kind: "citation", index: Number(token.content) }
      case "image": {
        const src = attributeOf(token, "src")
        const href = safeHref(src)
        const alt = textOf(token.children ?? [])
        const label: Inline = { kind: "text", text: alt === "" ? src : alt }
        // A link within a link is not a link.
        if (href === null || this.links > 0) return label
        return { kind: "link", href, bare: alt === "", content: [label] }
      }
      default:
        return { kind: "text", text: token.content }
    }
  }
}

const inlineOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<Inline> => {
  const run = new Run()
  for (const token of tokens) run.take(token)
  return run.content
}

const boxes: Readonly<Record<string, string>> = { " ": "☐", x: "☑", X: "☑" }

/** `[x] done` as a ticked box. */
const ticked = (item: ReadonlyArray<Block>): ReadonlyArray<Block> => {
  const [first, ...rest] = item
  if (first?.kind !== "paragraph") return item
  const [words, ...others] = first.content
  const box = words?.kind === "text" ? /^\[([ xX])\] /u.exec(words.text)?.[1] : undefined
  if (words?.kind !== "text" || box === undefined) return item
  const text = `${boxes[box]} ${words.text.slice("[x] ".length)}`
  return [{ ...first, content: [{ kind: "text", text }, ...others] }, ...rest]
}

const alignOf = (cell: Token): Cell["align"] => {
  const style = attributeOf(cell, "style")
  if (style.endsWith("center")) return "center"
  return style.endsWith("right") ? "end" : "start"
}

const tableOf = (tokens: ReadonlyArray<Token>): Block => {
  const rows: Array<Array<Cell>> = []
  tokens.forEach((token, place) => {
    if (token.type === "tr_open") rows.push([])
    if (token.type === "th_open" || token.type === "td_open") {
      const inline = tokens[place + 1]
      rows.at(-1)?.push({ align: alignOf(token), content: inlineOf(inline?.children ?? []) })
    }
  })
  const [head = [], ...body] = rows
  return { kind: "table", head, rows: body }
}

/** The block that `tokens`, from its opening to its closing one, stand for. */
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
      const items = parts(inside()).map((item) => ticked(blocksOf(item.slice(1, -1))))
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
const parts = (tokens: ReadonlyArray<Token>): ReadonlyArray<ReadonlyArray<Token>> => {
  const found: Array<ReadonlyArray<Token>> = []
  let depth = 0
  let begun = 0
  tokens.forEach(({ nesting }, place) => {
    depth += nesting
    if (depth > 0) return
    found.push(tokens.slice(begun, place + 1))
    begun = place + 1
  })
  return found
}

const blocksOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<Block> => parts(tokens).flatMap(blockOf)

/** The blocks of `markdown`. Time and memory are linear in its length. */
export const parse = (markdown: string): ReadonlyArray<Block> => {
  const asWritten: Block = { kind: "code", text: markdown }
  if (markdown.length > maxLength) return [asWritten]
  const tokens = parser.parse(markdown, {})
  // The parser drops content beyond its maximum nesting.
  return tokens.every(({ level }) => level < maxBlockDepth - 1) ? blocksOf(tokens) : [asWritten]
}

const inlineText = (parts: ReadonlyArray<Inline>): string => {
  const said: Array<string> = []
  for (const part of parts) {
    if (part.kind === "break") said.push("\n")
    // Nor the gap before it.
    else if (part.kind === "citation") said.push((said.pop() ?? "").trimEnd())
    else said.push("content" in part ? inlineText(part.content) : part.text)
  }
  return said.join("")
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
        .map((item, place) => `${start === null ? "" : `${start + place}. `}${plainText(item)}`)
        .join("\n")
    }
    case "table":
      return [block.head, ...block.rows]
        .map((row) => row.map(({ content }) => inlineText(content)).join(", "))
        .join("\n")
  }
}

/** The plain text without marks, for screen readers. */
export const plainText = (blocks: ReadonlyArray<Block>): string =>
  blocks
    .map(blockText)
    .filter((text) => text !== "")
    .join("\n")
