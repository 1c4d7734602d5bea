/**
 * Code of a page: listings, their titles and line numbers, and signatures of functions. The extraction removes short
 * texts beside listings, and takes a signature whose types are links for a menu.
 */
import { type Document, type Node, replaceBy, textOf } from "./Dom.ts"

const withoutSpace = (node: Node): string => textOf(node).replace(/\s+/g, "")

const nameOf = (node: Node): string => node.getAttribute("class") ?? ""

/**
 * Replaces a table that only adds line numbers to code by its code: one row of numbers and a block, with no other text.
 * The numbers would become a part of the code.
 */
const removeNumberColumns = (page: Document): void => {
  for (const table of page.querySelectorAll("table")) {
    if (table.querySelector("table") !== null) continue
    const [row, ...otherRows] = table.querySelectorAll("tr")
    const [numbers, code, ...others] = row?.children ?? []
    if (otherRows.length > 0 || numbers === undefined || code === undefined || others.length > 0) continue
    const block = code.querySelector("pre")
    if (block === null || !/^[\d\s]+$/.test(textOf(numbers))) continue
    if (withoutSpace(table) !== withoutSpace(numbers) + withoutSpace(block)) continue
    // Some generators put the table into a block of code.
    if (table.closest("pre") === null) table.parentElement?.insertBefore(block, table)
    else {
      const text = page.createElement("span")
      text.textContent = block.textContent
      table.parentElement?.insertBefore(text, table)
    }
    table.remove()
  }
}

/** Removes the numbers that generators put into the lines of a listing. */
const removeLineNumbers = (page: Document): void => {
  const names = ".linenos, .lineno, .ln, .line-number, .source-line-no, .hljs-ln-numbers"
  for (const number of page.querySelectorAll(names))
    if (number.closest("pre, .fragment") !== null && /^[\d\s]+$/.test(textOf(number))) number.remove()
}

/**
 * Makes the listings of Doxygen, which are divisions, blocks of code. Beside their lines they have texts of tooltips.
 */
const readFragments = (page: Document): void => {
  for (const fragment of page.querySelectorAll("div.fragment")) {
    const { parentElement: parent } = fragment
    if (parent === null || parent.closest("div.fragment, pre") !== null) continue
    const lines = [...fragment.querySelectorAll("div.line")].map((line) => line.textContent ?? "")
    if (lines.length === 0) continue
    const block = page.createElement("pre")
    block.textContent = lines.join("\n")
    parent.insertBefore(block, fragment)
    fragment.remove()
  }
}

/** Makes the prototypes of Doxygen, which are tables with a cell for each token, code. */
const readPrototypes = (page: Document): void => {
  for (const table of page.querySelectorAll("table.memname")) {
    const paragraph = page.createElement("p")
    const code = page.createElement("code")
    code.textContent = textOf(table).replace(/\s+/g, " ")
    paragraph.insertBefore(code, null)
    table.parentElement?.insertBefore(paragraph, table)
    table.remove()
  }
}

/** Marks lines that a listing shows as added or removed. The marks are drawn by style sheets. */
const markChanges = (page: Document): void => {
  const lines = ".line.diff.add, .line.diff.remove, .ec-line.ins, .ec-line.del"
  for (const line of page.querySelectorAll(lines)) {
    if (line.closest("pre") === null) continue
    const mark = page.createElement("span")
    mark.textContent = /(?:^|\s)(?:add|ins)(?=$|\s)/.test(nameOf(line)) ? "+" : "-"
    const code = line.querySelector(".code") ?? line
    code.insertBefore(mark, code.firstChild)
  }
}

/** Levels above a listing, and children of each, among which the extraction removes short texts. */
const maxLevels = 3
const maxSiblings = 5

/** Maximum length of the name of a language or a button beside a listing, in UTF-16 units. */
const maxToolLength = 30

/** Names and texts of what belongs to a listing and is no text: its language, its buttons and its line numbers. */
const toolName =
  /(?:^|[\s_-])(?:btn|button|copy|gutter|lang|language|line-?numbers?(?:-wrapper)?|toolbar)(?=$|[\s_-])/i
const toolText = /^(?:copied!?|copy(?: code| to clipboard)?|run|terminal window|try it|[\d\s]+)$/i

const languagesOf = (nodes: ReadonlyArray<Node | null>): ReadonlyArray<string> =>
  nodes
    .flatMap((node) => ["class", "data-lang", "data-language"].map((name) => node?.getAttribute(name) ?? ""))
    .join(" ")
    .toLowerCase()
    .split(/[\s-]+/)

/** True for the language of a listing, and for a button that is none. */
const isTool = (node: Node, block: Node): boolean => {
  const text = textOf(node)
  if (text.length > maxToolLength) return false
  if (toolName.test(nameOf(node)) || toolText.test(text)) return true
  return languagesOf([node.parentElement, block, block.querySelector("code")]).includes(text.toLowerCase())
}

const wrappers = "[class*='language-'], [class*='highlight'], .highlight"

/** The outermost element that the extraction replaces by the listing within it; the part itself without one. */
const wrapperOf = (part: Node): Node => {
  let outermost = part
  for (let level = 0, node = part.parentElement; level < maxLevels && node !== null; level++) {
    if (/^(?:DIV|FIGURE)$/.test(node.tagName) && node.closest(wrappers) === node) outermost = node
    node = node.parentElement
  }
  return outermost
}

/** Content of texts that the extraction keeps, and of controls. */
const otherContent =
  "blockquote, button, code, h1, h2, h3, h4, h5, h6, hr, img, label, ol, p, pre, svg, table, ul, [role=tab]"

const isShortText = (part: Node): boolean =>
  /^(?:DIV|SPAN|FIGCAPTION)$/.test(part.tagName) &&
  textOf(part) !== "" &&
  part.querySelector(otherContent) === null

/** Makes short texts beside a listing, such as the name of a file, paragraphs. */
const keepTitles = (page: Document): void => {
  const seen = new Map<Node, boolean>()
  for (const block of page.querySelectorAll("pre")) {
    let container = block.parentElement
    for (let level = 0; level < maxLevels && container !== null; level++) {
      if (!seen.has(container)) {
        const parts = [...container.children]
        const isTight = container.tagName !== "BODY" && parts.length <= maxSiblings
        seen.set(container, isTight)
        for (const part of isTight ? parts.filter(isShortText) : []) {
          if (isTool(part, block)) {
            part.remove()
            continue
          }
          const wrapper = wrapperOf(part)
          if (wrapper !== part) wrapper.parentElement?.insertBefore(part, wrapper)
          if (part.querySelector("div") !== null) part.textContent = textOf(part)
          replaceBy(page, part, "p")
        }
      }
      if (seen.get(container) === false) break
      container = container.parentElement
    }
  }
}

/** Links of API documentation to sources and playgrounds, and titles that only its scripts use. */
const toolLinks = "a.srclink, a.src, a.test-arrow, .viewcode-link, summary.hideme"

const signatures = "code a, .member-signature a, .type-signature a, .tsd-signature a, .code-header a, .sig a"

/** Makes links of signatures text. They lead to types, and code in Markdown has no links. */
const keepSignatures = (page: Document): void => {
  for (const link of page.querySelectorAll(signatures))
    if (/[\p{L}\p{N}]/u.test(textOf(link))) replaceBy(page, link, "span")
}

/** Makes emphasis and code within code text. Markdown within code is not read. */
const openCode = (page: Document): void => {
  for (const part of page.querySelectorAll("code em, code i, code b, code strong, code var, code code"))
    if (part.closest("pre") === null) replaceBy(page, part, "span")
}

/** Makes quotes that are listings alone listings. Some manuals indent code so. */
const openQuotedListings = (page: Document): void => {
  const quotes = new Set(
    [...page.querySelectorAll("blockquote > pre")].map(({ parentElement }) => parentElement)
  )
  for (const quote of quotes) {
    if (quote === null) continue
    const listings = [...quote.children].map((part) => (part.tagName === "PRE" ? textOf(part) : ""))
    const isAlone = textOf(quote).replace(/\s/g, "") === listings.join("").replace(/\s/g, "")
    if (isAlone) replaceBy(page, quote, "div")
  }
}

const lineMarker = "\uE002"

/** Makes a paragraph that is a listing, with line breaks or as an example, a listing. */
const readCodeParagraphs = (page: Document): void => {
  for (const code of page.querySelectorAll("p > code")) {
    const { parentElement: paragraph } = code
    const breaks = [...code.querySelectorAll("br")]
    const box = paragraph?.parentElement?.getAttribute("class") ?? ""
    if (paragraph?.firstElementChild !== code || code.nextElementSibling !== null) continue
    if (paragraph.closest("code") !== null) continue
    if (breaks.length === 0 && !/(?:^|\s)example(?=$|\s)/.test(box)) continue
    if (textOf(code) !== textOf(paragraph)) continue
    for (const line of breaks) {
      const marker = page.createElement("span")
      marker.textContent = lineMarker
      line.parentElement?.insertBefore(marker, line)
    }
    const lines = textOf(code)
      .replace(/[ \t\r\n]+/g, " ")
      .split(lineMarker)
    code.textContent = lines.map((line) => line.replace(/^ | $/g, "")).join("\n")
    replaceBy(page, paragraph, "pre")
  }
}

/** Joins code without a space between. The backticks of two pieces would become one mark in Markdown. */
const joinCode = (page: Document): void => {
  for (const code of page.querySelectorAll("code")) {
    const { previousSibling: before } = code
    if (before?.tagName !== "CODE" || code.closest("pre") !== null) continue
    for (let child = code.firstChild; child !== null; child = code.firstChild)
      before.insertBefore(child, null)
    code.remove()
  }
}

export const prepareCode = (page: Document): void => {
  removeNumberColumns(page)
  removeLineNumbers(page)
  readFragments(page)
  readPrototypes(page)
  markChanges(page)
  keepTitles(page)
  for (const link of page.querySelectorAll(toolLinks)) link.remove()
  keepSignatures(page)
  openQuotedListings(page)
  readCodeParagraphs(page)
  openCode(page)
  joinCode(page)
}
