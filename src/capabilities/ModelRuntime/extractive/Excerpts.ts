/**
 * Splits a Markdown passage into blocks that can be quoted: paragraphs, lists, code and tables. Markup that a reply
 * cannot show is removed.
 */
import { type Block, sectionSteps } from "../../../search/Blocks.ts"
import { plainText } from "../../../search/Heading.ts"
import { indentOf as columnOf } from "../../../search/MarkdownLines.ts"
import { labelOf } from "./NoteLabels.ts"

export interface Excerpt {
  readonly kind: "prose" | "code" | "table"
  /** Markdown, never blank. */
  readonly text: string
  /** True for the start of an entry of a list of definitions: the first line is a term, in bold. */
  readonly isEntry: boolean
}

const itemStart = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/
const isHeading = (line: string): boolean => /^ {0,3}#{1,6}\s/.test(line)
/** An import in MDX. */
const isImport = (line: string): boolean =>
  /^import\s[^'"]{1,300}\sfrom\s+['"][^'"]{1,300}['"];?\s*$/.test(line)

/** A tag of Hugo, Jekyll or Nunjucks that stands alone: `{{< figure … >}}`, `{{% hint %}}`, `{% alert %}`. */
const isGeneratorTag = (line: string): boolean =>
  /^\s*(?:\{\{<[^<>]{0,1000}>\}\}|\{\{%[^%]{0,1000}%\}\}|\{%[^%]{0,1000}%\})\s*$/.test(line)

/** The address of links elsewhere in the document: `[name]: https://example.com/`. */
const isLinkDefinition = (line: string): boolean =>
  /^ {0,3}\[[^\][^]{1,200}\]:\s{0,3}<?(?:[a-z][a-z0-9+.-]{1,20}:|www\.|[#/]|\.{1,2}\/)\S/i.test(line)

/** `line` without the prefix of a definition or a footnote. */
const withoutLinePrefix = (line: string): string =>
  line.replace(/^\s{0,3}:\s{1,3}(?=\S)/, "").replace(/^\s{0,3}\[\^[^\]\s]{1,40}\]:\s{0,3}/, "")

/** A letter or a punctuation mark of a script without spaces. */
const unspaced =
  /^[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}、。，．：；！？（）]/u
const letter = /^[\p{L}\p{N}]/u

/** Joins two lines, without a space if their script has none. */
const joinedLines = (before: string, next: string): string => {
  const last = Array.from(before.slice(-2)).at(-1) ?? ""
  const isUnspaced = unspaced.test(last)
    ? unspaced.test(next) || letter.test(next)
    : letter.test(last) && unspaced.test(next)
  return isUnspaced ? before + next : `${before} ${next}`
}

/** A line that begins with the name of a column or member: at most four words, without punctuation of sentences. */
const fieldLine =
  /^[\p{L}\p{N}][\p{L}\p{M}\p{N}_.()[\]/%#-]{0,39}(?: [\p{L}\p{M}\p{N}_.()[\]/%#-]{1,20}){0,3}: \S/u

/** Fields such as those of a record of CSV or JSON. */
const isRecord = (lines: ReadonlyArray<string>): boolean =>
  lines.length > 1 && lines.every((line) => fieldLine.test(line))

/**
 * Joins wrapped lines; list items, the fields of a record and what follows a hard line break keep their lines. The first
 * line of a note becomes its label.
 */
const unwrapLines = (paragraph: string): string => {
  // The address of a link may stand on the next line.
  const writtenLines = paragraph.replace(/\]:[ \t]{0,3}\n\s{0,8}(?=https?:)/g, "]: ").split("\n")
  if (isRecord(writtenLines)) return writtenLines.map((line) => `- ${line}`).join("\n")
  const lines: Array<string> = []
  let isBroken = false
  for (const line of writtenLines) {
    if (isHeading(line) || isImport(line) || isLinkDefinition(line) || isGeneratorTag(line)) continue
    const content = withoutLinePrefix(line)
    const words = content.replace(/\\\s{0,3}$/, "")
    const label = labelOf(words)
    if (label === "") continue
    if (lines.length === 0 || label !== undefined || isBroken || itemStart.test(words))
      lines.push(label ?? words.trimEnd())
    else lines.push(joinedLines(lines.pop() ?? "", words.trim()))
    isBroken = words !== content
  }
  return lines.join("\n")
}

const indentOf = (line: string): number => line.length - line.trimStart().length

/** The marker of a list item; `1` for any number. */
const markerOf = (line: string): string | undefined => itemStart.exec(line)?.[0].trim().replace(/^\d.*/, "1")

/**
 * The indentation of each line. The first line of a block has lost its own, so that of the others is relative to the
 * next item with the same marker.
 */
const indentsOf = (lines: ReadonlyArray<string>): ReadonlyArray<number> => {
  const [first = "", ...others] = lines
  const marker = markerOf(first)
  const sameMarker = others.filter((line) => marker !== undefined && markerOf(line) === marker)
  const lostIndent = sameMarker.length === 0 ? 0 : Math.min(...sameMarker.map(columnOf))
  return [0, ...others.map((line) => Math.max(0, columnOf(line) - lostIndent))]
}

const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": " ",
  "&amp;": "&"
}

/** The text of a `<pre>`. */
const fromHtml = (text: string): string =>
  text
    .replace(/<br\s{0,3}\/?>/gi, "\n")
    .replace(/<[^<>]{1,500}>/g, "")
    .replace(/&(?:lt|gt|quot|#39|nbsp|amp);/g, (found) => entities[found] ?? found)
    .replace(/^\n+/, "")

/**
 * Code as a fence without the indentation of its list. The fence is closed, because chunking may have cut long code.
 */
const fencedCode = (text: string): string => {
  const isHtml = /^\s*<pre/i.test(text)
  const lines = (isHtml ? fromHtml(text) : text).trimEnd().split("\n")
  const indent = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf))
  const [first = "", ...rest] = lines.map((line) => line.slice(indent))
  const fence = isHtml ? undefined : /^(?:`{3,}|~{3,})/.exec(first)?.[0]
  if (fence === undefined) return ["```", first, ...rest, "```"].join("\n")
  const isClosed = rest.at(-1)?.trim().startsWith(fence) === true
  return [first, ...rest, ...(isClosed ? [] : [fence])].join("\n")
}

const image = /!\[[^\][]{0,200}\](?:\([^)]{0,2000}\)|\[[^\][]{0,200}\])/g
/** A link around a picture, after the picture was removed. */
const emptyLink = /\[\s{0,9}\](?:\([^()]{0,2000}\)|\[[^\][]{0,200}\])/g

/** True for a block without text, such as a picture. */
const isBlank = ({ kind, text }: Block): boolean =>
  !/[\p{L}\p{N}]/u.test(kind === "code" ? text : text.replace(image, "").replace(emptyLink, ""))

const tableOfContentsItem = /^\s*(?:[-*+]|\d{1,3}[.)])\s+\[[^\][]{1,300}\]\(#[^()]{0,300}\)\s*$/

/** True for a table of contents: a list of links to headings of the same page. */
const isTableOfContents = ({ kind, text }: Block): boolean => {
  const lines = text.split("\n")
  return kind === "prose" && lines.length > 1 && lines.every((line) => tableOfContentsItem.test(line))
}

const relativeLink = /(`[^`]*`)|\[([^\][]{0,300})\]\((?![a-z][a-z0-9+.-]{0,30}:|\/\/)[^()]{0,2000}\)/gi

/** A link whose address stands elsewhere in the document. Text without a letter is a note or an index. */
const referenceLink = /(?<![\p{L}\p{N}\])])\[([^\][]{0,300})\]\[[^\][]{0,200}\]/gu

/**
 * Relative links and links by reference do not work in a reply, so only their text is kept. The mark of a heading that
 * was within a tag is removed.
 */
const displayedText = (text: string): string =>
  plainText(text.replace(referenceLink, (link, words: string) => (/\p{L}/u.test(words) ? words : link)))
    .replace(relativeLink, "$1$2")
    .replace(/^#{1,6}\s+/, "")

/** {@link displayedText} of each line, with its indentation: nested lists stay nested. */
const displayedLines = (text: string): string => {
  const lines = text.split("\n")
  const indents = indentsOf(lines)
  return lines.map((line, index) => " ".repeat(indents[index] ?? 0) + displayedText(line)).join("\n")
}

/** A row of a table with pipes at its sides. */
const withPipes = (row: string): string => {
  const cells = row.trim()
  return `${cells.startsWith("|") ? "" : "| "}${cells}${cells.endsWith("|") ? "" : " |"}`
}

/** A line that is a term or a question, in bold, before another line. Numbered ones are steps, which belong together. */
const termLine = /^\*\*(?!(?:\p{L}{1,12} )?\d)[^\n]{1,300}\*\*[ \t\\]{0,3}\n/u

const excerptOf = ({ kind, text }: Block): Excerpt => {
  if (kind === "code") return { kind, text: fencedCode(text), isEntry: false }
  if (kind === "prose") return { kind, text: displayedLines(unwrapLines(text)), isEntry: termLine.test(text) }
  return { kind, text: displayedText(text.split("\n").map(withPipes).join("\n")), isEntry: false }
}

/** Joins the label of a note with the paragraph after it. A label without text after it is left out. */
const withLabels = (all: ReadonlyArray<Excerpt>): ReadonlyArray<Excerpt> => {
  const joined: Array<Excerpt> = []
  let label: Excerpt | undefined
  for (const excerpt of all) {
    const isParagraph = excerpt.kind === "prose" && !itemStart.test(excerpt.text)
    if (isParagraph && /^\*\*[^*\n]{1,200}:\*\*$/.test(excerpt.text)) label = excerpt
    else {
      if (label !== undefined && !isParagraph) joined.push(label)
      const text = label !== undefined && isParagraph ? `${label.text} ${excerpt.text}` : excerpt.text
      joined.push({ ...excerpt, text })
      label = undefined
    }
  }
  return joined
}

const fenceLine = /^\s{0,20}(?:`{3}|~{3})/
const quoteMark = /^\s{0,20}>[ \t]?/

/** `text` without the marks of quotes, so that code, lists and tables in them are read as such. */
const withoutQuotes = (text: string): string => {
  const lines: Array<string> = []
  let isCode = false
  let isQuotedCode = false
  for (const line of text.split("\n")) {
    if (isCode || !quoteMark.test(line)) {
      // The end of a quote ends its code.
      if (isQuotedCode) lines.push("```")
      isQuotedCode = false
      if (fenceLine.test(line)) isCode = !isCode
      lines.push(line)
      continue
    }
    let words = line.replace(quoteMark, "")
    while (!isQuotedCode && quoteMark.test(words)) words = words.replace(quoteMark, "")
    if (fenceLine.test(words)) isQuotedCode = !isQuotedCode
    lines.push(words)
  }
  return lines.join("\n")
}

/** All quotable blocks of `text`, in order. */
export const excerpts = (text: string): ReadonlyArray<Excerpt> =>
  withLabels(
    [...sectionSteps("", withoutQuotes(text), "markdown")]
      .flatMap((section) => section?.blocks ?? [])
      .filter((block) => !isBlank(block) && !isTableOfContents(block))
      .map(excerptOf)
      .filter((excerpt) => /[\p{L}\p{N}]/u.test(excerpt.text))
  )

/** Maximum number of quoted rows of a table. */
const maxRows = 8

/** A table with its header and only its relevant rows, because a chat cannot show large tables. */
export const narrowTable = (table: string, isRelevant: (row: string) => boolean): string => {
  const [head = "", rule = "", ...rows] = table.split("\n")
  if (!tableRule.test(rule)) return table
  const chosen = rows.filter(isRelevant)
  return [head, rule, ...(chosen.length === 0 ? rows : chosen).slice(0, maxRows)].join("\n")
}

const tableRule = /^[\s|:-]+$/
const withoutPadding = (row: string): string => row.replace(/\s/g, "").replace(/-+/g, "-")

/** The rows of `other` below those of `one`, if both are pieces of one table. */
const joinSplitTable = (one: Excerpt, other: Excerpt): string | undefined => {
  const [head = "", rule = "", ...rows] = other.text.split("\n")
  const [ownHead = "", ownRule = ""] = one.text.split("\n", 2)
  const isSame =
    withoutPadding(head) === withoutPadding(ownHead) && withoutPadding(rule) === withoutPadding(ownRule)
  return isSame && tableRule.test(rule) ? [one.text, ...rows].join("\n") : undefined
}

/** Code or a table that chunking has cut in two, as one block; undefined if the two do not belong together. */
export const joinSplitBlock = (one: Excerpt | undefined, other: Excerpt | undefined): string | undefined => {
  if (one?.kind === "table" && other?.kind === "table") return joinSplitTable(one, other)
  if (one?.kind !== "code" || other?.kind !== "code") return undefined
  const [opening = "", ...lines] = other.text.split("\n")
  if (one.text.split("\n", 1)[0] !== opening) return undefined
  return [...one.text.split("\n").slice(0, -1), ...lines].join("\n")
}

/** Maximum number of quoted lines of code. */
const maxCodeLines = 60

/** Code of at most {@link maxCodeLines} lines. */
export const shortenCode = (code: string): string => {
  const [opening = "", ...lines] = code.split("\n")
  const closing = lines.pop() ?? ""
  return lines.length <= maxCodeLines
    ? code
    : [opening, ...lines.slice(0, maxCodeLines), "…", closing].join("\n")
}
