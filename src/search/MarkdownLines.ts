/** Classifies a line of Markdown: heading, code fence, list item, delimiter row of a table. */
import { cleanHeading } from "./Heading.ts"

/**
 * Maximum length of a heading, in UTF-16 units. A longer line is a paragraph, because the heading is repeated for every
 * chunk.
 */
const maxHeadingLength = 200

export interface Heading {
  readonly level: number
  readonly text: string
}

const countLeading = (text: string, character: string): number => {
  let count = 0
  while (text[count] === character) count++
  return count
}

export const parseHeading = (line: string): Heading | undefined => {
  const text = line.trim()
  const level = countLeading(text, "#")
  if (level < 1 || level > 6 || countLeading(line, " ") > 3 || line.startsWith("\t")) return undefined
  if (text.length > maxHeadingLength || !/^\s/.test(text.slice(level))) return undefined
  // A heading may be closed with a row of #.
  const [, title = ""] = /^(.*?)(?:\s#+)?$/.exec(text.slice(level).trim()) ?? []
  const words = cleanHeading(title)
  return words === "" ? undefined : { level, text: words }
}

/** The level of the heading above an underline: 1 for `===`, 2 for `---`; undefined for any other line. */
export const underlineLevel = (line: string): 1 | 2 | undefined => {
  const [, underline] = /^ {0,3}(={3,}|-{3,})[ \t]*$/.exec(line) ?? []
  return underline === undefined ? undefined : underline.startsWith("=") ? 1 : 2
}

/** `line` as a heading, when the line below it is an underline of `level`. */
export const underlinedHeading = (line: string, level: 1 | 2): Heading | undefined => {
  const text = line.trim()
  if (text.length > maxHeadingLength || text.startsWith(">")) return undefined
  const words = cleanHeading(text)
  return words === "" ? undefined : { level, text: words }
}

export interface Fence {
  readonly mark: string
  readonly length: number
}

export const opensFence = (line: string): Fence | undefined => {
  const text = line.trimStart()
  const mark = text[0] ?? ""
  const length = mark === "`" || mark === "~" ? countLeading(text, mark) : 0
  if (length < 3 || (mark === "`" && text.includes("`", length))) return undefined
  return { mark, length }
}

export const closesFence = ({ mark, length }: Fence, line: string): boolean => {
  const text = line.trim()
  return text.length >= length && countLeading(text, mark) === text.length
}

/** Columns before the first character. A tab advances to the next multiple of four. */
export const indentOf = (line: string): number => {
  let columns = 0
  for (const character of line) {
    if (character === " ") columns++
    else if (character === "\t") columns += 4 - (columns % 4)
    else break
  }
  return columns
}

/** Indentation in columns, relative to the enclosing block, from which a line is code. */
export const codeIndent = 4

/** Whether the line is the delimiter row below the header of a table: `---|---`. */
export const isDelimiterRow = (line: string): boolean =>
  line.includes("|") && line.includes("--") && /^[-:| \t]+$/.test(line)

const listMarker = /^[ \t]*(?:[-*+]|(\d{1,9})[.)])(?:[ \t]+(?=\S)|[ \t]*$)/
const isHorizontalRule = (line: string): boolean => /^([-*_])\1\1+$/.test(line.replace(/[ \t]+/g, ""))

interface ListMarker {
  /** Column at which the text of the item begins. Lines indented at least as far belong to it. */
  readonly offset: number
  /** Whether the list may begin in the middle of a paragraph. */
  readonly mayInterrupt: boolean
}

export const parseListMarker = (line: string): ListMarker | undefined => {
  const [found, number] = listMarker.exec(line) ?? []
  if (found === undefined || isHorizontalRule(line)) return undefined
  const trimmed = found.trimEnd()
  const minOffset = indentOf(line) + trimmed.trimStart().length + 1
  const gap = found.length - trimmed.length
  return {
    offset: gap > codeIndent ? minOffset : minOffset + Math.max(0, gap - 1),
    mayInterrupt: number === undefined || number === "1"
  }
}

/**
 * A line whose text goes on in paragraphs that are indented like code: a definition (`: text`), or a note, a collapsible
 * block or a tab of Python-Markdown (`!!! note`, `??? note`, `=== "Tab"`).
 */
export const opensContainer = /^[ \t]*(?:(?:!!!|\?\?\?\+?|===[+!]?)[ \t]+["\p{L}]|:[ \t]{1,3}\S)/u

export const opensHtmlCode = /^ {0,3}<pre[\s>]/i
export const closesHtmlCode = /<\/pre>/i
