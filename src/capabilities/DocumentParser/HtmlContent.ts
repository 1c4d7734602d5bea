/**
 * Prepares a page for the extraction of its article, which would take short lists for metadata, indent nested items
 * wrongly and leave tables with merged cells as HTML.
 */

/** The used members of a DOM element. */
interface Node {
  readonly tagName: string
  readonly parentElement: Node | null
  readonly previousElementSibling: Node | null
  readonly firstElementChild: Node | null
  readonly firstChild: Node | null
  readonly children: Iterable<Node>
  textContent: string | null
  readonly getAttribute: (name: string) => string | null
  readonly removeAttribute: (name: string) => void
  readonly insertBefore: (child: Node, before: Node | null) => void
  readonly querySelector: (selector: string) => Node | null
  readonly querySelectorAll: (selector: string) => Iterable<Node>
}
export interface Document {
  readonly createElement: (name: string) => Node
  readonly querySelectorAll: (selector: string) => Iterable<Node>
}

/** The extraction keeps a list that something with a colon introduces. */
const introduction = "\uE000:"

const containers = new Set(["LI", "TD", "TH", "DD", "BLOCKQUOTE", "DETAILS", "FIGURE"])
const contents = new Set(["P", "PRE", "TABLE", "UL", "OL", "DL", "BLOCKQUOTE", "DETAILS", "FIGURE"])

/** Introduces lists that stand within content or after it. Lists of metadata stand alone in their element. */
const introduceLists = (page: Document): void => {
  for (const list of page.querySelectorAll("ul, ol, dl")) {
    const { parentElement: parent, previousElementSibling: before } = list
    if (parent === null) continue
    if (!containers.has(parent.tagName) && (before === null || !contents.has(before.tagName))) continue
    const introducing = page.createElement("span")
    introducing.textContent = introduction
    parent.insertBefore(introducing, list)
  }
}

/** The first of the characters that tell the depth of an item, from 0. They are in no page. */
const firstDepth = 0xe100
const maxDepth = 0x9f

/** Begins each nested item with a character for its depth. */
const markDepths = (page: Document): void => {
  const depths = new Map<Node, number>()
  for (const item of page.querySelectorAll("li")) {
    const list = item.parentElement
    const depth = (depths.get(list?.parentElement ?? item) ?? -1) + 1
    depths.set(item, depth)
    if (depth === 0 || depth > maxDepth) continue
    const first = item.firstElementChild
    const place = first !== null && first === item.firstChild && first.tagName === "P" ? first : item
    const mark = page.createElement("span")
    mark.textContent = String.fromCharCode(firstDepth + depth)
    place.insertBefore(mark, place.firstChild)
  }
}

/** Maximum cells that a cell may span, and maximum cells that are added to a page. */
const maxSpan = 50
const maxAddedCells = 10_000
/** Maximum length of a text that is repeated, in UTF-16 units. A longer one is no label. */
const maxRepeatedLength = 200

const spanOf = (cell: Node, name: "colspan" | "rowspan"): number => {
  const span = Number(cell.getAttribute(name) ?? 1)
  cell.removeAttribute(name)
  return Number.isInteger(span) && span > 1 ? Math.min(span, maxSpan) : 1
}

/** Replaces cells that span several rows or columns: they are repeated in each row, and followed by empty cells. */
const splitCells = (page: Document): void => {
  let added = 0
  for (const table of page.querySelectorAll("table")) {
    // Tables around tables lay out a page.
    if (table.querySelector("table") !== null) continue
    /** By column: the text of the cell that spans further rows, and how many. */
    let spanning = new Map<number, { readonly text: string; readonly rows: number }>()
    for (const row of table.querySelectorAll("tr")) {
      const further = new Map<number, { readonly text: string; readonly rows: number }>()
      let column = 0
      const add = (text: string, before: Node | null) => {
        added++
        const cell = page.createElement("td")
        cell.textContent = text
        row.insertBefore(cell, before)
      }
      const repeat = (before: Node | null) => {
        for (let above = spanning.get(column); above !== undefined; above = spanning.get(column)) {
          if (added >= maxAddedCells) return
          add(above.text, before)
          if (above.rows > 1) further.set(column, { text: above.text, rows: above.rows - 1 })
          column++
        }
      }
      const cells = [...row.children]
      for (const [place, cell] of cells.entries()) {
        repeat(cell)
        const [columns, rows] = [spanOf(cell, "colspan"), spanOf(cell, "rowspan")]
        const content = (cell.textContent ?? "").trim()
        const text = content.length <= maxRepeatedLength ? content : ""
        for (let at = 0; at < columns && added < maxAddedCells; at++) {
          if (at > 0) add("", cells[place + 1] ?? null)
          if (rows > 1) further.set(column, { text: at === 0 ? text : "", rows: rows - 1 })
          column++
        }
      }
      repeat(null)
      spanning = further
    }
  }
}

/** Removes the pronunciation beside a word, which would become words of the sentence. */
const removePronunciation = (page: Document): void => {
  for (const reading of page.querySelectorAll("ruby > rt, ruby > rp")) reading.textContent = ""
}

/** Changes the page. The extracted text has to go through {@link cleaned}. */
export const prepare = (page: Document): void => {
  introduceLists(page)
  markDepths(page)
  splitCells(page)
  removePronunciation(page)
}

/** The extracted text of a prepared page. */
export const cleaned = (text: string): string =>
  text
    .replace(/^[ \t]*\uE000:[ \t]*\n/gmu, "")
    .replaceAll(introduction, "")
    .replace(
      /^[ \t]*((?:[-*+]|\d{1,9}\.)[ \t]{1,4}(?:\[[ x]\] )?)([\uE100-\uE19F])/gmu,
      (_, marker: string, depth: string) => "\t".repeat(depth.charCodeAt(0) - firstDepth) + marker
    )
    .replace(/[\uE100-\uE19F]/gu, "")
