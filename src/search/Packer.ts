/**
 * Documents to chunks: whole paragraphs packed up to 800 characters, longer ones cut at sentences, fences and tables kept
 * whole up to 1,600, no overlap (measured best). Time is linear in the length of any input.
 */
import { type Block, type Format, outlining } from "./Blocks.ts"

/** UTF-16 units a chunk of paragraphs holds. */
const packedLength = 800
/** UTF-16 units up to which a fence or a table stays in one piece. */
const wholeLength = 1_600

export interface PackedChunk {
  /** 0 for the document's first chunk. */
  readonly ordinal: number
  /** Path of headings the chunk stands under, `A > B`, without the document's own title; may be empty. */
  readonly heading: string
  /** 1 to 1,600 UTF-16 units, never blank. */
  readonly content: string
}

const sentences = new Intl.Segmenter("en", { granularity: "sentence" })

/** Where the last sentence that ends inside the window ends, or undefined. */
const sentenceEnd = (window: string): number | undefined => {
  let end: number | undefined
  for (const { index } of sentences.segment(window)) if (index > 0) end = index
  return end
}

const lastSpace = (window: string): number | undefined => {
  for (let at = window.length - 1; at > 0; at--) if (/\s/.test(window.charAt(at))) return at
  return undefined
}

/** As much as fits, without splitting a surrogate pair. */
const fullLength = (window: string): number => {
  const last = window.charCodeAt(window.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? window.length - 1 : window.length
}

const lineEnd = (window: string): number | undefined => {
  const at = window.lastIndexOf("\n")
  return at > 0 ? at : undefined
}

/** What each piece of a block begins and ends with, so that it means the same alone: its fence, or a table's header. */
interface Frame {
  readonly head: string
  readonly tail: string
}

const noFrame: Frame = { head: "", tail: "" }
/** A longer first line is no fence or header that could be repeated. */
const maxFrameLength = 300

const frameOf = (text: string): Frame => {
  const [first = "", second = ""] = text.slice(0, maxFrameLength * 2).split("\n", 2)
  if (first.length + second.length > maxFrameLength) return noFrame
  const [, fence] = /^[ \t]*(`{3,}|~{3,})/.exec(first) ?? []
  if (fence !== undefined) return { head: `${first}\n`, tail: `\n${fence}` }
  const isTable = first.trimStart().startsWith("|") && /^[ \t]*\|[-:| \t]+$/.test(second)
  return isTable ? { head: `${first}\n${second}\n`, tail: "" } : noFrame
}

/** {@link cuts} of a block, each with the block's {@link Frame}. */
function* pieces(block: Block): Generator<string> {
  if (!block.whole || block.text.length <= wholeLength) return yield* cuts(block)
  const { head, tail } = frameOf(block.text)
  let before: string | undefined
  for (const piece of cuts(block)) {
    if (before !== undefined) yield before + tail
    before = before === undefined ? piece : head + piece.replace(/^\n/, "")
  }
  if (before !== undefined) yield before
}

/** Cuts a block that is too long: code and tables at lines, prose at sentences, both else at a space, else anywhere. */
function* cuts({ text, whole }: Block): Generator<string> {
  let from = 0
  while (text.length - from > (from === 0 && whole ? wholeLength : packedLength)) {
    const window = text.slice(from, from + packedLength)
    const cut = (whole ? lineEnd(window) : sentenceEnd(window)) ?? lastSpace(window) ?? fullLength(window)
    yield window.slice(0, cut)
    from += cut
  }
  yield text.slice(from)
}

/** Blank lines around a piece go; the indentation of its first line stays. */
const trimmed = (text: string): string => text.trimEnd().replace(/^(?:[^\S\n]*\n)+/, "")

function* pack(blocks: ReadonlyArray<Block>): Generator<string> {
  let open = ""
  for (const block of blocks) {
    for (const piece of pieces(block)) {
      const next = block.whole ? trimmed(piece) : piece.trim()
      if (next.trim() === "") continue
      if (open !== "" && open.length + 2 + next.length <= packedLength) open += `\n\n${next}`
      else {
        if (open !== "") yield open
        open = next
      }
    }
  }
  if (open !== "") yield open
}

export interface PackableDocument {
  readonly title: string
  readonly content: string
  readonly format: Format
}

/** As {@link packMarkdown}, chunk by chunk; undefined where none is ready and the caller may pause. */
export function* packing({
  title,
  content,
  format
}: PackableDocument): Generator<PackedChunk | undefined, void, void> {
  let ordinal = 0
  for (const section of outlining(title, content, format)) {
    if (section === undefined) yield undefined
    else {
      for (const text of pack(section.blocks)) {
        yield { ordinal: ordinal++, heading: section.heading, content: text }
      }
    }
  }
}

/**
 * Chunks of a document in reading order; none when it has no visible text. Every visible character is in a `content`, in
 * a `heading` or in the title; only the marks of headings go.
 */
export const packMarkdown = (document: PackableDocument): ReadonlyArray<PackedChunk> => {
  const chunks: Array<PackedChunk> = []
  for (const chunk of packing(document)) if (chunk !== undefined) chunks.push(chunk)
  return chunks
}

/** A longer title is cut where it stands before each chunk's text. */
const titleLength = 200

/** What stands for a chunk when it is embedded: models that read only the beginning see title and headings first. */
export const embeddingText = (chunk: {
  readonly title: string
  readonly heading: string
  readonly content: string
}): string =>
  [chunk.title.slice(0, titleLength).toWellFormed(), chunk.heading, chunk.content]
    .filter((text) => text !== "")
    .join("\n")
