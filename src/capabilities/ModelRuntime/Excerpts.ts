/** A passage of Markdown as the pieces that can be quoted from it: whole sentences, list items, code and tables. */
import { type Block, sections } from "../../search/Blocks.ts"

export interface Excerpt {
  readonly kind: "sentence" | "item" | "block"
  /** Markdown, never blank. */
  readonly text: string
  /** Text in or about it whose words say less about its subject: code, names of columns. */
  readonly aside: string
  /** Number of the paragraph or list that it stands in. */
  readonly group: number
}

const segmenter = new Intl.Segmenter("en", { granularity: "sentence" })

/** A full stop that ends no sentence. */
const abbreviation = /[\s(](?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|mrs|ms|st)\.$/i
/** Characters that are enough to know one: what stands before it, the longest of them, and a space. */
const abbreviationLength = 9

/** What a text has opened when it has come so far: code, a link, an abbreviation. */
class Openings {
  #ticks = 0
  #links = 0
  #inLink = false
  /** The last characters. */
  #last = " "

  take(text: string): void {
    for (const character of text) {
      if (character === "`") this.#ticks++
      else if (character === "(" && this.#last.endsWith("]")) {
        this.#links++
        this.#inLink = true
      } else if (character === ")" && this.#inLink) {
        this.#links--
        this.#inLink = false
      }
      this.#last = (this.#last + character).slice(-abbreviationLength)
    }
  }

  get isOpen(): boolean {
    return this.#ticks % 2 === 1 || this.#links > 0 || abbreviation.test(this.#last.trimEnd())
  }
}

/** Pieces of a segment that was cut inside code, a link or an abbreviation are joined again. */
const sentencesOf = (text: string): ReadonlyArray<string> => {
  const found: Array<Array<string>> = []
  let openings = new Openings()
  for (const { segment } of segmenter.segment(text)) {
    if (openings.isOpen) found.at(-1)?.push(segment)
    else {
      found.push([segment])
      openings = new Openings()
    }
    openings.take(segment)
  }
  return found.map((segments) => segments.join("").trim()).filter((sentence) => sentence !== "")
}

/** Images show nothing in an extract, and footnote marks would pass for citations. */
const plain = (text: string): string =>
  text
    .replace(/!\[([^\]]{0,200})\]\([^)]{0,2000}\)/g, "$1")
    .replace(/\[\^?\d{1,3}\](?![([:])/g, "")
    .replace(/\s+/g, " ")
    .trim()

const item = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/
const quote = /^\s*>\s?/

interface Run {
  readonly isItem: boolean
  text: string
}

/** Lines of a paragraph: items of a list each for itself, hard-wrapped prose in one run. */
const runsOf = (paragraph: string): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  for (const line of paragraph.split("\n")) {
    const last = runs.at(-1)
    const isItem = item.test(line)
    if (isItem || last === undefined) runs.push({ isItem, text: line })
    else last.text += ` ${line.trim().replace(quote, "")}`
  }
  return runs
}

const isHeading = (text: string): boolean => /^#{1,6}\s/.test(text)

const fromParagraph = (text: string, group: number): ReadonlyArray<Excerpt> =>
  runsOf(text.replace(quote, "")).flatMap((run): ReadonlyArray<Excerpt> => {
    const content = plain(run.text)
    if (content === "" || isHeading(content)) return []
    if (run.isItem) return [{ kind: "item", text: content, aside: "", group }]
    return sentencesOf(content).map((sentence) => ({ kind: "sentence", text: sentence, aside: "", group }))
  })

const indentOf = (line: string): number => line.length - line.trimStart().length

/** A fence without its list's indentation, and closed: a long one may have been cut when it was chunked. */
const wholeBlock = (text: string): string => {
  const lines = text.trimEnd().split("\n")
  const indent = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf))
  const [first = "", ...rest] = lines.map((line) => line.slice(indent))
  const fence = /^(?:`{3,}|~{3,})/.exec(first)?.[0]
  const closed = fence === undefined || rest.at(-1)?.trim().startsWith(fence) === true
  return [first, ...rest, ...(closed ? [] : [fence])].join("\n")
}

const isBlank = (block: Block): boolean => !/[\p{L}\p{N}]/u.test(block.text)

const isCode = (text: string): boolean => /^(?:`{3}|~{3})/.test(text)

const cellsOf = (row: string): ReadonlyArray<string> =>
  row
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => plain(cell.replaceAll("\\|", "|")))

/** A row with the names of its columns, for a chat shows a whole table badly and most of it answers nothing. */
const fromTable = (table: string, group: number): ReadonlyArray<Excerpt> => {
  const [head = "", rule = "", ...rows] = table.split("\n")
  if (!/^[\s|:-]+$/.test(rule)) return [{ kind: "block", text: table, aside: "", group }]
  const [, ...columns] = cellsOf(head)
  return rows.flatMap((row): ReadonlyArray<Excerpt> => {
    const [first = "", ...cells] = cellsOf(row)
    const named = cells.flatMap((cell, place) => {
      const column = columns[place] ?? ""
      return cell === "" ? [] : [column === "" ? cell : `${column}: ${cell}`]
    })
    const text = [first, named.join("; ")].filter((part) => part !== "").join(" – ")
    return text === "" ? [] : [{ kind: "item", text: `- ${text}`, aside: head, group }]
  })
}

/** A command belongs to the sentence before it, which mostly announces it. */
const fromCode = (code: string, before: Excerpt | undefined, group: number): Excerpt => ({
  kind: "block",
  text: before === undefined ? code : `${before.text}\n\n${code}`,
  aside: code,
  group
})

const listLength = 8

/** The items of the list that begins at `from`, or one more than a short list has. */
const listAt = (all: ReadonlyArray<Excerpt>, from: number): ReadonlyArray<Excerpt> => {
  const group = all[from]?.group
  const some = all.slice(from, from + listLength + 1)
  const end = some.findIndex((next) => next.kind !== "item" || next.group !== group)
  return end < 0 ? some : some.slice(0, end)
}

/** `The plans are:` says nothing without its list. */
const joinLists = (all: ReadonlyArray<Excerpt>): ReadonlyArray<Excerpt> => {
  const joined: Array<Excerpt> = []
  for (let place = 0; place < all.length; place++) {
    const excerpt = all[place]
    if (excerpt === undefined) break
    const announces = excerpt.kind === "sentence" && excerpt.text.endsWith(":")
    const items = announces ? listAt(all, place + 1) : []
    if (items.length === 0 || items.length > listLength) joined.push(excerpt)
    else {
      const lines = items.map(({ text }) => text)
      joined.push({ ...excerpt, kind: "block", text: `${excerpt.text}\n\n${lines.join("\n")}` })
      place += items.length
    }
  }
  return joined
}

/** Everything that can be quoted from `text`, in order. */
export const excerpts = (text: string): ReadonlyArray<Excerpt> => {
  const found: Array<Excerpt> = []
  let group = 0
  for (const { blocks } of sections("", text, "markdown")) {
    const inSection: Array<Excerpt> = []
    for (const block of blocks) {
      if (isBlank(block)) continue
      group++
      const whole = block.whole ? wholeBlock(block.text) : ""
      if (!block.whole) inSection.push(...fromParagraph(block.text, group))
      else if (!isCode(whole)) inSection.push(...fromTable(whole, group))
      else
        inSection.push(
          fromCode(whole, inSection.at(-1)?.kind === "block" ? undefined : inSection.pop(), group)
        )
    }
    found.push(...joinLists(inSection))
  }
  return found
}
