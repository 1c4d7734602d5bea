/** A passage of Markdown as blocks that can be quoted: paragraphs, lists, code and tables, without what a reply cannot show. */
import { type Block, sections } from "../../search/Blocks.ts"
import { plain } from "../../search/Heading.ts"

export interface Excerpt {
  readonly kind: "prose" | "code" | "table"
  /** Markdown, never blank. */
  readonly text: string
}

const itemStart = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/
const isHeading = (line: string): boolean => /^ {0,3}#{1,6}\s/.test(line)

/** Hard-wrapped lines run on; items of a list keep their lines. */
const unwrapped = (paragraph: string): string => {
  const lines: Array<string> = []
  for (const line of paragraph.split("\n").filter((line) => !isHeading(line))) {
    const words = line.replace(/^\s*>\s?/, "")
    if (lines.length === 0 || itemStart.test(words)) lines.push(words.trimEnd())
    else lines.push(`${lines.pop() ?? ""} ${words.trim()}`)
  }
  return lines.join("\n")
}

const indentOf = (line: string): number => line.length - line.trimStart().length

/** Code as a fence without its list's indentation, and closed: a long one may have been cut when it was chunked. */
const fenced = (text: string): string => {
  const lines = text.trimEnd().split("\n")
  const indent = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf))
  const [first = "", ...rest] = lines.map((line) => line.slice(indent))
  const fence = /^(?:`{3,}|~{3,})/.exec(first)?.[0]
  if (fence === undefined) return ["```", first, ...rest, "```"].join("\n")
  const closed = rest.at(-1)?.trim().startsWith(fence) === true
  return [first, ...rest, ...(closed ? [] : [fence])].join("\n")
}

const isBlank = (block: Block): boolean => !/[\p{L}\p{N}]/u.test(block.text)

const relativeLink = /(`[^`]*`)|\[([^\][]{0,300})\]\((?![a-z][a-z0-9+.-]{0,30}:|\/\/)[^()]{0,2000}\)/gi

/** Links within the source lead nowhere from a reply: their words stay. */
const shown = (text: string): string => plain(text).replace(relativeLink, "$1$2")

const excerptOf = ({ kind, text }: Block): Excerpt => {
  if (kind === "code") return { kind, text: fenced(text) }
  if (kind === "prose") return { kind, text: shown(unwrapped(text)) }
  return { kind, text: shown(text.replace(/^[^\S\n]+/gm, "")) }
}

/** Everything that can be quoted from `text`, in order. */
export const excerpts = (text: string): ReadonlyArray<Excerpt> =>
  sections("", text, "markdown")
    .flatMap(({ blocks }) => blocks)
    .filter((block) => !isBlank(block))
    .map(excerptOf)
    .filter((excerpt) => /[\p{L}\p{N}]/u.test(excerpt.text))

/** Rows of a table that are quoted at most. */
const maxRows = 8

/** A table with its header and of its rows those that `answers`, for a chat shows a whole table badly. */
export const narrowed = (table: string, answers: (row: string) => boolean): string => {
  const [head = "", rule = "", ...rows] = table.split("\n")
  if (!/^[\s|:-]+$/.test(rule)) return table
  const chosen = rows.filter(answers)
  return [head, rule, ...(chosen.length === 0 ? rows : chosen).slice(0, maxRows)].join("\n")
}
