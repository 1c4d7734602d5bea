/**
 * Splits documents into chunks. Whole paragraphs and lists are packed up to 800 characters, longer paragraphs are cut
 * at sentences, longer lists between items. Code and tables are kept whole up to 1,600. Chunks do not overlap (measured
 * best). Time is linear in the length of any input.
 */
import { type Block, type Format, sectionSteps } from "./Blocks.ts"
import { isDelimiterRow } from "./MarkdownLines.ts"

/** Maximum length of a chunk of paragraphs, in UTF-16 units. */
const maxPackedLength = 800
/** Maximum length of code or a table that is kept in one piece, in UTF-16 units. */
const maxWholeLength = 1_600

export interface PackedChunk {
  /** 0 for the document's first chunk. */
  readonly ordinal: number
  /** Path of the headings above the chunk, `A > B`, without the document's own title; may be empty. */
  readonly heading: string
  /** 1 to 1,600 UTF-16 units, never blank. */
  readonly content: string
}

const sentences = new Intl.Segmenter("en", { granularity: "sentence" })

/** The end of the last sentence that ends inside the window, or undefined. */
const sentenceEnd = (window: string): number | undefined => {
  let end: number | undefined
  for (const { index } of sentences.segment(window)) if (index > 0) end = index
  return end
}

const lastSpace = (window: string): number | undefined => {
  for (let at = window.length - 1; at > 0; at--) if (/\s/.test(window.charAt(at))) return at
  return undefined
}

/** The most that fits, without splitting a surrogate pair. */
const fullLength = (window: string): number => {
  const last = window.charCodeAt(window.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? window.length - 1 : window.length
}

const lineEnd = (window: string): number | undefined => {
  const at = window.lastIndexOf("\n")
  return at > 0 ? at : undefined
}

/**
 * Text that each piece of a block begins and ends with, so that it can be read alone: the fence or the tag of code, or a
 * table's header.
 */
interface Frame {
  readonly head: string
  readonly tail: string
}

const noFrame: Frame = { head: "", tail: "" }
/** A longer first line is not repeated as a fence or header, in UTF-16 units. */
const maxFrameLength = 300

/** Maximum length of the two lines of a table's header, in UTF-16 units. */
const maxHeaderLength = 8_000

/** The beginning of a table without the padding of its columns. */
const unpadded = (table: string): string =>
  table.slice(0, maxHeaderLength).replace(/ {2,}/g, " ").replace(/-{4,}/g, "---")

const frameOf = ({ kind, text }: Block): Frame => {
  const [first = "", second = ""] = (kind === "table" ? unpadded(text) : text)
    .slice(0, maxFrameLength * 2)
    .split("\n", 2)
  if (first.length + second.length > maxFrameLength) return noFrame
  const [, fence] = /^[ \t]*(`{3,}|~{3,})/.exec(first) ?? []
  if (fence !== undefined) return { head: `${first}\n`, tail: `\n${fence}` }
  const [tags] = /^ {0,3}<pre[^<>]*>(?:<code[^<>]*>)?/i.exec(first) ?? []
  if (tags !== undefined) return { head: tags, tail: "</pre>" }
  return kind === "table" && isDelimiterRow(second) ? { head: `${first}\n${second}\n`, tail: "" } : noFrame
}

/** {@link cuts} of a block, each with the block's {@link Frame}. */
function* pieces(block: Block): Generator<string> {
  if (block.kind === "prose" || block.text.length <= maxWholeLength) return yield* cuts(block)
  const { head, tail } = frameOf(block)
  let before: string | undefined
  for (const piece of cuts(block)) {
    if (before !== undefined) yield before + tail
    before = before === undefined ? piece : head + piece.replace(/^\n/, "")
  }
  if (before !== undefined) yield before
}

const itemStarts = /\n(?=[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t])/g

/** The start of the last nested item within a list item, unless too little would stand before it. */
const lastNestedItem = (window: string): number | undefined => {
  let at: number | undefined
  for (const { index } of window.matchAll(itemStarts)) if (index > maxPackedLength / 4) at = index
  return at
}

const proseEnd = (window: string, isItem: boolean): number | undefined =>
  (isItem ? lastNestedItem(window) : undefined) ?? sentenceEnd(window)

/**
 * Cuts a block that is too long: code and tables at lines, prose at sentences, list items between nested items, else at
 * a space, else at any character.
 */
function* cuts({ items, kind, text }: Block): Generator<string> {
  const whole = kind !== "prose"
  let from = 0
  while (text.length - from > (from === 0 && whole ? maxWholeLength : maxPackedLength)) {
    const window = text.slice(from, from + maxPackedLength)
    const cut =
      (whole ? lineEnd(window) : proseEnd(window, items.length > 0)) ??
      lastSpace(window) ??
      fullLength(window)
    yield window.slice(0, cut)
    from += cut
  }
  yield text.slice(from)
}

/** Removes blank lines around a piece. The indentation of its first line stays. */
const withoutBlankLines = (text: string): string => text.trimEnd().replace(/^(?:[^\S\n]*\n)+/, "")

/** Text that is not cut any further, and the separator before it when it shares a chunk with the text before. */
interface Piece {
  readonly text: string
  readonly gap: "\n" | "\n\n"
}

/** Groups blocks that belong together: a paragraph, or a list with the blocks in its items. */
function* groups(blocks: ReadonlyArray<Block>): Generator<ReadonlyArray<Block>> {
  let open: Array<Block> = []
  for (const block of blocks) {
    if (!block.continues && open.length > 0) {
      yield open
      open = []
    }
    open.push(block)
  }
  if (open.length > 0) yield open
}

/** A list item: its text, and the blocks that continue it. */
interface Item {
  readonly blocks: ReadonlyArray<Block>
  readonly gap: Piece["gap"]
}

/** The items of a group, each with its blocks. Blocks before the first item are a part of their own. */
function* itemsOf(group: ReadonlyArray<Block>): Generator<Item> {
  let open: Array<Block> = []
  let gap: Item["gap"] = "\n\n"
  for (const block of group) {
    let from = 0
    for (const start of block.items) {
      if (start === 0) continue
      yield { blocks: [...open, { ...block, text: block.text.slice(from, start) }], gap }
      open = []
      gap = "\n"
      from = start
    }
    open.push(from === 0 ? block : { ...block, text: block.text.slice(from) })
  }
  yield { blocks: open, gap }
}

const trimmedPiece = ({ kind }: Block, piece: string): string =>
  kind === "prose" ? piece.trim() : withoutBlankLines(piece)

const joinedBlocks = (blocks: ReadonlyArray<Block>): string =>
  blocks.map((block) => trimmedPiece(block, block.text)).join("\n\n")

/** The pieces to pack: whole groups where they fit, else whole items, else parts of items. */
function* piecesOf(group: ReadonlyArray<Block>): Generator<Piece> {
  const isList = group.length > 1 || (group[0]?.items.length ?? 0) > 1
  if (!isList) {
    for (const block of group)
      for (const piece of pieces(block)) yield { text: trimmedPiece(block, piece), gap: "\n\n" }
    return
  }
  const whole = joinedBlocks(group)
  if (whole.length <= maxPackedLength) return yield { text: whole, gap: "\n\n" }
  for (const { blocks, gap } of itemsOf(group)) {
    const text = joinedBlocks(blocks)
    if (text.length <= maxPackedLength) yield { text, gap }
    else
      for (const block of blocks)
        for (const piece of pieces(block)) yield { text: trimmedPiece(block, piece), gap: "\n\n" }
  }
}

/** Yields the full chunks of `blocks`, and returns the text that further blocks of the section may be added to. */
function* pack(blocks: ReadonlyArray<Block>, before: string): Generator<string, string> {
  let open = before
  for (const group of groups(blocks)) {
    for (const { gap, text } of piecesOf(group)) {
      if (text.trim() === "") continue
      if (open !== "" && open.length + gap.length + text.length <= maxPackedLength) open += gap + text
      else {
        if (open !== "") yield open
        open = text
      }
    }
  }
  return open
}

/** The chunks of a document, each with its heading; see {@link chunkSteps}. */
function* chunkTexts({ title, content, format }: PackableDocument) {
  let heading = ""
  let open = ""
  for (const section of sectionSteps(title, content, format)) {
    if (section === undefined) yield undefined
    else {
      if (!section.continues && open !== "") {
        yield { heading, content: open }
        open = ""
      }
      heading = section.heading
      const chunks = pack(section.blocks, open)
      let next = chunks.next()
      for (; next.done !== true; next = chunks.next()) yield { heading, content: next.value }
      open = next.value
    }
  }
  if (open !== "") yield { heading, content: open }
}

export interface PackableDocument {
  readonly title: string
  readonly content: string
  readonly format: Format
}

/**
 * Chunks of a document in reading order; none when it has no visible text. Every visible character is in a `content`,
 * in a `heading` or in the title. Only heading marks are dropped. Yields undefined when no chunk is ready, so that the
 * caller can pause.
 */
export function* chunkSteps(document: PackableDocument): Generator<PackedChunk | undefined, void, void> {
  let ordinal = 0
  for (const text of chunkTexts(document)) yield text && { ordinal: ordinal++, ...text }
}

/** Maximum length of the title before each chunk's text; a longer one is cut. */
const maxTitleLength = 200

/**
 * The text that is embedded for a chunk. Title and headings come first, because some models read only the beginning.
 */
export const embeddingText = (chunk: {
  readonly title: string
  readonly heading: string
  readonly content: string
}): string =>
  [chunk.title.slice(0, maxTitleLength).toWellFormed(), chunk.heading, chunk.content]
    .filter((text) => text !== "")
    .join("\n")
