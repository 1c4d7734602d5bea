/**
 * Prepares a page for the extraction of its article, which would take short lists for metadata, indent nested items
 * wrongly, leave tables with merged cells as HTML, and remove elements by their names.
 */
import { type Document, isMainlyLinks, type Node, replaceBy, textOf } from "./Dom.ts"
import { prepareCode } from "./HtmlCode.ts"
import { showPanels } from "./HtmlPanels.ts"
import { markSections, removeControls, removeNames } from "./HtmlNames.ts"

/** Inserted before a list. The extraction keeps a list that follows text with a colon. */
const listMarker = "\uE000:"

const contentParents = new Set(["LI", "TD", "TH", "DD", "BLOCKQUOTE", "DETAILS", "FIGURE"])
const contentSiblings = new Set(["P", "PRE", "TABLE", "UL", "OL", "DL", "BLOCKQUOTE", "DETAILS", "FIGURE"])

/** Marks lists that stand within content or after it. Lists of metadata stand alone in their element. */
const markContentLists = (page: Document): void => {
  for (const list of page.querySelectorAll("ul, ol, dl")) {
    const { parentElement: parent, previousElementSibling: before } = list
    if (parent === null) continue
    if (!contentParents.has(parent.tagName) && (before === null || !contentSiblings.has(before.tagName)))
      continue
    const marker = page.createElement("span")
    marker.textContent = listMarker
    parent.insertBefore(marker, list)
  }
}

/** The character that marks an item of depth 0. Those after it mark deeper ones. No page contains them. */
const depthMarkerBase = 0xe100
const maxDepth = 0x9f

/** Inserts a character for its depth at the beginning of each nested item. */
const markDepths = (page: Document): void => {
  const depths = new Map<Node, number>()
  for (const item of page.querySelectorAll("li")) {
    const list = item.parentElement
    const depth = (depths.get(list?.parentElement ?? item) ?? -1) + 1
    depths.set(item, depth)
    if (depth === 0 || depth > maxDepth) continue
    const first = item.firstElementChild
    const container = first !== null && first === item.firstChild && first.tagName === "P" ? first : item
    const mark = page.createElement("span")
    mark.textContent = String.fromCharCode(depthMarkerBase + depth)
    container.insertBefore(mark, container.firstChild)
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
      const nextSpanning = new Map<number, { readonly text: string; readonly rows: number }>()
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
          if (above.rows > 1) nextSpanning.set(column, { text: above.text, rows: above.rows - 1 })
          column++
        }
      }
      const cells = [...row.children]
      for (const [index, cell] of cells.entries()) {
        repeat(cell)
        const [columns, rows] = [spanOf(cell, "colspan"), spanOf(cell, "rowspan")]
        const content = (cell.textContent ?? "").trim()
        const text = content.length <= maxRepeatedLength ? content : ""
        for (let at = 0; at < columns && added < maxAddedCells; at++) {
          if (at > 0) add("", cells[index + 1] ?? null)
          if (rows > 1) nextSpanning.set(column, { text: at === 0 ? text : "", rows: rows - 1 })
          column++
        }
      }
      repeat(null)
      spanning = nextSpanning
    }
  }
}

const blocks = "h1, h2, h3, h4, h5, h6, p, div, ul, ol, dl, pre, table, blockquote, details, button"

/** The element that begins with the first words of a definition; undefined where it begins with another block. */
const firstParagraph = (definition: Node): Node | undefined => {
  const [first] = definition.querySelectorAll(blocks)
  if (first === undefined || !textOf(definition).startsWith(textOf(first))) return definition
  return first.tagName === "P" ? first : undefined
}

/**
 * Moves the terms before a definition, such as the option of a command, into its first paragraph. As a paragraph of its
 * own a term could end one chunk, and its definition begin the next.
 */
const joinTerms = (page: Document): void => {
  for (const definition of page.querySelectorAll("dd")) {
    const terms: Array<Node> = []
    let before = definition.previousElementSibling
    for (; before?.tagName === "DT"; before = before.previousElementSibling) terms.unshift(before)
    const paragraph = firstParagraph(definition)
    if (paragraph === undefined || terms.some((term) => term.querySelector(blocks) !== null)) continue
    const start = paragraph.firstChild
    for (const term of terms.filter((one) => textOf(one) !== "")) {
      const isStrong = term.querySelector("b, strong") !== null
      paragraph.insertBefore(term, start)
      paragraph.insertBefore(page.createElement("br"), start)
      replaceBy(page, term, isStrong ? "span" : "strong")
    }
  }
}

/** The texts of a drawing, such as the labels of a diagram. Numbers of its axes are none. */
const labelsOf = (drawing: Node): ReadonlyArray<string> =>
  [...drawing.querySelectorAll("text, foreignObject")].map(textOf).filter((text) => /\p{L}/u.test(text))

/**
 * Replaces an icon that is alone in its cell by its label, such as "Included", and a diagram by the texts in it. As
 * Markdown a drawing would be its markup.
 */
const readDrawings = (page: Document): void => {
  const lengths = new Map<Node | null, number>()
  for (const drawing of page.querySelectorAll("svg")) {
    const { parentElement: parent } = drawing
    if (parent === null || parent.closest("svg") !== null) continue
    const cell = drawing.closest("td, th")
    const labels = labelsOf(drawing)
    if (cell !== null) {
      const length = lengths.get(cell) ?? textOf(cell).length
      lengths.set(cell, length)
      const title = drawing.querySelector("title")
      const label = drawing.getAttribute("aria-label") ?? (title === null ? "" : textOf(title))
      const isAlone = textOf(drawing).length === length
      const text = page.createElement("span")
      text.textContent = isAlone ? label : ""
      if (drawing.getAttribute("aria-hidden") !== "true") parent.insertBefore(text, drawing)
    } else if (labels.length > 1) {
      const text = page.createElement(/^(?:P|SPAN|A|H[1-6])$/.test(parent.tagName) ? "span" : "p")
      text.textContent = labels.join(", ")
      parent.insertBefore(text, drawing)
    }
    drawing.remove()
  }
}

/** What the label of a note consists of. */
const noteLabel = /^[\d\s*†‡,()[\]]+$/u

/** Removes links from notes back to their marks, with their labels. The extraction removes the marks. */
const removeNoteLabels = (page: Document): void => {
  const links = [
    ...page.querySelectorAll("[role=doc-footnote] [role=doc-backlink], .footnote [role=doc-backlink]")
  ]
  const labels = new Set(links.map((link) => link.parentElement))
  for (const label of labels) if (label !== null && noteLabel.test(textOf(label))) label.remove()
  for (const link of links) link.remove()
}

/** Removes the pronunciation beside a word. Its text would become a part of the sentence. */
const removePronunciation = (page: Document): void => {
  for (const reading of page.querySelectorAll("ruby > rt, ruby > rp")) reading.textContent = ""
}

/** Makes the caption of a table a paragraph before it. Markdown has no captions. */
const moveCaptions = (page: Document): void => {
  for (const caption of page.querySelectorAll("table > caption")) {
    const table = caption.parentElement
    const parent = table?.parentElement ?? null
    const text = (caption.textContent ?? "").trim()
    if (text === "" || parent === null) continue
    const paragraph = page.createElement("p")
    paragraph.textContent = text
    caption.textContent = ""
    parent.insertBefore(paragraph, table)
  }
}

/** Number of elements after a heading where the extraction looks for a date. */
const dateSearchElements = 3
/** Headings of a page that are protected. Its main one is among the first. */
const maxHeadings = 100

/**
 * Inserts empty elements after top headings. The extraction removes a short element with a date there, also if it is a
 * sentence, such as when a shop is closed.
 */
const protectDates = (page: Document): void => {
  for (const heading of [...page.querySelectorAll("h1")].slice(0, maxHeadings)) {
    const { nextElementSibling: next, parentElement: parent } = heading
    if (next === null || parent === null) continue
    for (let at = 0; at < dateSearchElements; at++) parent.insertBefore(page.createElement("span"), next)
  }
}

/**
 * Moves the content of articles that have less than half of the text of the page's main element into divisions. The
 * extraction would take such an article for all of the content.
 */
const openSmallArticles = (page: Document): void => {
  for (const main of [...page.querySelectorAll("main")].slice(0, 1)) {
    const length = (main.textContent ?? "").length
    for (const article of main.querySelectorAll("article")) {
      if (2 * (article.textContent ?? "").length < length) replaceBy(page, article, "div")
    }
  }
}

/**
 * Moves the content of forms that have at least half of the page's text into divisions. Some servers put every page
 * into a form, and the extraction removes forms.
 */
const openLargeForms = (page: Document): void => {
  const [body] = page.querySelectorAll("body")
  const length = (body?.textContent ?? "").length
  for (const form of page.querySelectorAll("form")) {
    if (2 * (form.textContent ?? "").length >= length) replaceBy(page, form, "div")
  }
}

/** Makes labels of what is no form text: of finished tasks, and of values. The extraction removes all labels. */
const openLabels = (page: Document): void => {
  const fields = new Map<Node, boolean>()
  for (const group of page.querySelectorAll("main fieldset, article fieldset, [role=main] fieldset")) {
    if (group.closest("form") !== null || group.querySelector("select, textarea, button") !== null) continue
    for (const legend of [...group.children].slice(0, 1))
      if (legend.tagName === "LEGEND") replaceBy(page, legend, "p")
    replaceBy(page, group, "div")
  }
  for (const label of page.querySelectorAll("main label, article label, [role=main] label")) {
    const { parentElement: parent } = label
    if (parent === null || label.closest("form, nav, aside") !== null) continue
    const known =
      fields.get(parent) ?? parent.querySelector("input:not([disabled]), select, textarea") !== null
    fields.set(parent, known)
    if (known) continue
    // Style sheets draw the space between a label and its value.
    const space = page.createElement("span")
    space.textContent = " "
    label.insertBefore(space, null)
    replaceBy(page, label, "span")
  }
}

/** Removes labels that the extraction takes for those of links to skip a part of the page. */
const removeSkipLabels = (page: Document): void => {
  for (const node of page.querySelectorAll("[aria-label*='skip' i]")) {
    const isLink = node.tagName === "A"
    const leadsElsewhere = isLink && !(node.getAttribute("href") ?? "").startsWith("#")
    if (leadsElsewhere || (!isLink && !isMainlyLinks(node))) node.removeAttribute("aria-label")
  }
}

/** Links that the extraction removes with their words: to the top of the page, to authors, and of advertisers. */
const removedLinks = [
  "[href^='#main']",
  "[href='#top' i]",
  "[href='#content']",
  "[href*='#toc']",
  "[href*='/author/']",
  "[href*='/author?']",
  "[href$='/author']",
  "[rel~='sponsored' i]",
  "[aria-label*='skip' i]"
]
  .map((attribute) => `a${attribute}`)
  .join()

/** Keeps the words of such links in a text that has other words. Alone they lead elsewhere. */
const keepLinkWords = (page: Document): void => {
  const lengths = new Map<Node, number>()
  for (const link of page.querySelectorAll(removedLinks)) {
    const { parentElement: parent } = link
    if (parent === null) continue
    const length = lengths.get(parent) ?? textOf(parent).length
    lengths.set(parent, length)
    if (length > textOf(link).length) replaceBy(page, link, "span")
  }
}

const sentenceEnd = /[.!?…。！？]["'”’»)]?$/u

/** True for a paragraph that ends like a sentence, and names no author or date. */
const isSentence = (node: Node): boolean => {
  const text = textOf(node)
  if (node.tagName !== "P" || !sentenceEnd.test(text) || !/[\s。！？]/u.test(text)) return false
  return !isMainlyLinks(node) && node.querySelector("time, [rel~='author']") === null
}

/**
 * Moves headings of sections and sentences out of headers. The extraction removes most headers, which have the author
 * and the date beside the title.
 */
const openHeaders = (page: Document): void => {
  for (const header of page.querySelectorAll("main header, article header")) {
    const parts = [...header.children].filter((child) => /^H[2-6]$/.test(child.tagName) || isSentence(child))
    for (const part of parts) header.parentElement?.insertBefore(part, header)
  }
}

/**
 * Moves what follows the title of a manual page of AsciiDoc into its content: a section that says what the command
 * does. Its header, which the extraction removes, is before the content.
 */
const openHeadersOfManuals = (page: Document): void => {
  for (const content of page.querySelectorAll("#header + #content")) {
    const header = content.previousElementSibling
    if (header === null || header.querySelector("form, img, nav, ul") !== null) continue
    const [title, ...parts] = header.children
    if (title?.tagName !== "H1" || parts[0]?.tagName !== "H2") continue
    const start = content.firstChild
    for (const part of parts) content.insertBefore(part, start)
  }
}

const spaceMarker = "\uE001"
const textNodes = 4

/**
 * Marks the space before a word that begins with a punctuation mark, such as `.gitignore` or `:8080`. The extraction
 * removes spaces before punctuation marks.
 */
const markSpaces = (page: Document): void => {
  const walker = page.createTreeWalker(page.documentElement, textNodes)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.textContent ?? ""
    const marked = text.replace(/\s(?=[,.!?:;]+[^\s,.!?:;])/gu, (space) => space + spaceMarker)
    if (marked !== text && node.parentElement?.closest("pre, code, script, style") === null)
      node.textContent = marked
  }
}

/** Changes the page. The extracted text has to go through {@link cleaned}. */
export const prepare = (page: Document): void => {
  markContentLists(page)
  markDepths(page)
  prepareCode(page)
  readDrawings(page)
  splitCells(page)
  removePronunciation(page)
  moveCaptions(page)
  openHeadersOfManuals(page)
  protectDates(page)
  openSmallArticles(page)
  openLargeForms(page)
  joinTerms(page)
  removeNoteLabels(page)
  removeSkipLabels(page)
  keepLinkWords(page)
  openHeaders(page)
  showPanels(page)
  openLabels(page)
  removeControls(page)
  removeNames(page)
  markSections(page)
  markSpaces(page)
}

/** The extracted text of a prepared page. */
export const cleaned = (text: string): string =>
  text
    .replace(/^[ \t]*\uE000:[ \t]*\n/gmu, "")
    .replaceAll(listMarker, "")
    .replaceAll(spaceMarker, "")
    // Where Javadoc allows a line to break.
    .replaceAll("\u200B(", "(")
    // A note whose class has two hyphens.
    .replace(/^(> \[!)-(\w{1,20}\] )-/gmu, "$1$2")
    .replace(
      /^[ \t]*((?:[-*+]|\d{1,9}\.)[ \t]{1,4}(?:\[[ x]\] )?)([\uE100-\uE19F])/gmu,
      (_, marker: string, depth: string) => "\t".repeat(depth.charCodeAt(0) - depthMarkerBase) + marker
    )
    .replace(/[\uE100-\uE19F]/gu, "")
