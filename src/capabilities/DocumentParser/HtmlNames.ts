/**
 * Names of elements. The extraction removes elements whose class or id contains one of several hundred texts, such as
 * `error-`, `profile`, `next-` or `date`, and so whole sections of documentation. Only names that say unmistakably what
 * is no content are left to it, and those that it needs to find content.
 */
import { type Document, isMainlyLinks, type Node, replaceBy, textOf } from "./Dom.ts"

/** Parts of names of what is no content. */
const noContentNames = [
  // Advertisements and requests.
  /(?:^|[\s_-])(?:ads?|advert[a-z]*|consent|cookies?|modal|newsletter[a-z]*|paywall|popup|promo[a-z]*|sponsor[a-z]*|subscribe[a-z]*)(?=$|[\s_-])/i,
  // What others say, and where. Comments of code are documentation.
  /(?:^|[\s_-])(?:addthis|addtoany|(?<!(?:code|deprecation|doc|tsd)-)comments?|disqus|recommend[a-z]*|related|share|sharing|social|trending)(?=$|[\s_-])/i,
  // Ways to other pages and places.
  /(?:^|[\s_-])(?:back-to-top|breadcrumbs?|edit-link|edit-page|editsection|headerlink|[a-z]*nav|nav[a-z]*|pager|pagination|prev-?next|read-also|read-more|read-next|search-[a-z]+|skip-[a-z]+|toc)(?=$|[\s_-])/i,
  // Frames of pages.
  /(?:^|[\s_-])(?:banner|copyright|[a-z]*footer|header|masthead|noprint|sidebar)(?=$|[\s_-])/i,
  // Details of an article.
  /(?:^|[\s_-])(?:author-(?:bio|box|card|info)|avatar|byline|(?:article|entry|post)-(?:author|date|meta|tags))(?=$|[\s_-])/i
]

/** Maximum number of words of the id of a frame of a page. Ids with more are of sections. */
const maxFrameIdWords = 3

/** True for names that say that an element is no content. */
export const isNoContent = (names: string): boolean => noContentNames.some((pattern) => pattern.test(names))

/** Names of sections at the end of a page that are no content, though their headings are the same. */
const noContentId =
  /^(?:comments?|follow-us|leave-a-(?:comment|reply)|newsletter|related-(?:articles|content|pages|posts)|share|subscribe)$/

/** Names by which the extraction finds content, formulas, callouts, footnotes, code and hidden elements. */
const neededNames = [
  /(?:^|\s)(?:article_post|(?:js-)?article-(?:body|content|wrapper)|content|content-article|entry-content|instapaper_body|markdown-body|post|post-body|post-content)(?=$|\s)/i,
  // The extraction takes an alert with a kind for a callout, and removes any other.
  /(?:^|\s)(?:alert\s(?:.{0,200}\s)?alert-|markdown-alert)/i,
  /(?:^|[\s_:-])(?:admonition|callout|citation|cite[a-z]*|fn[a-z0-9]*|footnotes?[a-z]*|ftnt|hidden|invisible|references?)(?=$|[\s_:-])/i,
  /(?:^|[\s_:-])(?:codeblock|gutter|highlight[a-z]*|hljs|katex|lang|language|ltx|math[a-z]*|mjx|rouge|syntaxhighlighter)(?=$|[\s_:-])/i
]

const nameAttributes = [
  "class",
  "id",
  "data-component",
  "data-test",
  "data-testid",
  "data-test-id",
  "data-qa",
  "data-cy"
]

const attributesButId = nameAttributes.filter((name) => name !== "id")

const selectorOf = (attributes: ReadonlyArray<string>): string => attributes.map((name) => `[${name}]`).join()

const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "")

/** Maximum length of a heading of which an id is made, in UTF-16 units. */
const maxHeadingLength = 200

/**
 * True if the id was made of the heading of the element, as documentation generators do. `linked` has ids to which
 * their headings link.
 */
const isAnchor = (node: Node, id: string, linked: ReadonlySet<string>): boolean => {
  const heading = node.firstElementChild
  if (id === "" || heading === null || !/^H[1-6]$/.test(heading.tagName)) return false
  if (noContentId.test(id) && !linked.has(id)) return false
  return slugOf(textOf(heading).slice(0, maxHeadingLength)) === slugOf(id)
}

const isLinkWithinPage = (node: Node): boolean =>
  node.tagName === "A" && (node.getAttribute("href") ?? "").startsWith("#")

/** The text of a link that a generator adds to what can be linked to. */
const linkMark = /^[¶§#🔗\u200B]+$/u

const headings = "h1, h2, h3, h4, h5, h6"

/** Words of links that generators add to headings. */
const linkWords =
  /^\W{0,3}(?:anchor|back to top|copy(?: link)?|(?:direct link|link|permalink|section titled)(?: .{1,200})?|edit|hide|show|top|up)\W{0,3}$/i

/**
 * Makes links of headings within the page text. The extraction removes them with their words, such as the heading's.
 */
const keepHeadings = (page: Document): void => {
  const lengths = new Map<Node, number>()
  for (const link of page.querySelectorAll("h1 a, h2 a, h3 a, h4 a, h5 a, h6 a")) {
    const heading = link.closest(headings)
    const text = textOf(link)
    if (heading === null || !isLinkWithinPage(link) || !/[\p{L}\p{N}]/u.test(text)) continue
    const length = lengths.get(heading) ?? textOf(heading).length
    lengths.set(heading, length)
    if (text.length < length && linkWords.test(text)) link.remove()
    else replaceBy(page, link, "span")
  }
}

/** A link of a sentence. Sphinx gives it the class of a reference, and the extraction removes those as footnotes. */
const isLinkOfText = (node: Node, names: string): boolean =>
  isLinkWithinPage(node) && /(?:^|\s)reference internal(?=$|\s)/.test(names) && /\p{L}/u.test(textOf(node))

/** Names of what generators and wikis add to a page: when it was changed, and what readers can do with it. */
const footerName =
  /(?:^|[\s_-])(?:edit-this-page|label-list|last-?updated|likes-and-labels-container|page-(?:feedback|metadata)|was-this-(?:page-)?helpful)(?=$|[\s_-])/i

/** Maximum length of such a part of a page, in UTF-16 units. */
const maxFooterLength = 300

const isFooter = (node: Node, names: string): boolean =>
  footerName.test(names) &&
  !/^(?:TD|TH|TR|H[1-6])$/.test(node.tagName) &&
  textOf(node).length <= maxFooterLength

/** Names of elements that the extraction removes, with values of any kind. */
const removedAttributes = ["data-date", "data-orientation"]

/**
 * Removes the names of elements that may be content, elements of links whose names say that they are none, footers, and
 * marks of links within the page.
 */
export const removeNames = (page: Document): void => {
  const linked = new Set<string>()
  for (const link of page.querySelectorAll("a[href]")) {
    if (!isLinkWithinPage(link)) continue
    if (link.closest(headings) !== null) linked.add((link.getAttribute("href") ?? "").slice(1))
    if (linkMark.test(textOf(link))) link.remove()
  }
  keepHeadings(page)
  for (const node of page.querySelectorAll(selectorOf(removedAttributes)))
    for (const name of removedAttributes) node.removeAttribute(name)
  for (const node of page.querySelectorAll(selectorOf(nameAttributes))) {
    if (/^(?:HTML|HEAD|BODY)$/.test(node.tagName) || node.closest("code, pre") !== null) continue
    const id = node.getAttribute("id") ?? ""
    if (/^H[1-6]$/.test(node.tagName) || isAnchor(node, id, linked)) node.removeAttribute("id")
    const namesOf = (attributes: ReadonlyArray<string>) =>
      attributes.map((name) => node.getAttribute(name) ?? "").join(" ")
    const names = namesOf(nameAttributes)
    if (isFooter(node, names)) {
      node.remove()
      continue
    }
    const isSectionId = id.split(/[\s_-]+/).length > maxFrameIdWords
    if (isNoContent(isSectionId ? namesOf(attributesButId) : names)) {
      if (isMainlyLinks(node) && node.querySelector("h1, article, main") === null) node.remove()
      continue
    }
    if (!isLinkOfText(node, names) && neededNames.some((pattern) => pattern.test(names))) continue
    for (const name of nameAttributes) node.removeAttribute(name)
  }
}

/** Texts of controls that generators add to each page, and of their states. */
const controlTexts = [
  /^(?:edit|improve|suggest edits to) this page(?: on \w{1,20})?$/i,
  /^(?:edit|view) on (?:bitbucket|codeberg|github|gitlab)$/i,
  /^(?:view|show)(?: page)? source$/i,
  /^(?:was|did) this(?: article| page| section)? help(?:ful)?(?: you)?\s?\??$/i,
  /^war(?: dies| diese seite| dieser artikel)? hilfreich\s?\?$/i,
  /^(?:on|in) this (?:article|page)$/i,
  /^auf dieser seite$/i,
  /^(?:skip to (?:main )?content|zum inhalt springen)$/i,
  /^(?:diese seite bearbeiten|seite bearbeiten)$/i,
  /^(?:last (?:modified|updated)|zuletzt aktualisiert)(?: am| on)?:? .{0,40}(?:ago|\d)(?: by .{1,60})?$/i
]

/** Maximum length of such a text, in UTF-16 units. */
const maxControlLength = 160

/** True for the text of an element that is a control. */
const isControlText = (text: string): boolean =>
  text.length <= maxControlLength && controlTexts.some((control) => control.test(text))

/** Children of an element of a control, and levels of them. */
const maxControlChildren = 4
const maxControlDepth = 3

const isSmall = (node: Node, depth = maxControlDepth): boolean => {
  const children = [...node.children]
  return (
    children.length <= (depth === 0 ? 0 : maxControlChildren) &&
    children.every((child) => isSmall(child, depth - 1))
  )
}

const isBlank = (sibling: Node | null): boolean =>
  sibling === null || sibling.tagName !== undefined || (sibling.textContent ?? "").trim() === ""

/** True for an element that stands alone, and is no part of a sentence. */
const isAlone = (node: Node): boolean =>
  /^(?:ARTICLE|ASIDE|BODY|DIV|FOOTER|HEADER|MAIN|SECTION)$/.test(node.parentElement?.tagName ?? "") &&
  isBlank(node.previousSibling) &&
  isBlank(node.nextSibling)

/** Removes controls whose elements have no names, such as those of GitBook. */
export const removeControls = (page: Document): void => {
  for (const node of page.querySelectorAll("p, div, span, a"))
    if (isSmall(node) && isAlone(node) && isControlText(textOf(node).replace(/\s+/g, " "))) node.remove()
}

/** The extraction takes an element of this class for content, whatever its words are. */
const contentClass = "font"

/** Length above which the extraction takes a section for content by itself. */
const maxMarkedLength = 3_000

/** True for text without controls that is not a list of other articles. */
const isText = (block: Node): boolean => {
  if (isMainlyLinks(block) || block.querySelector("button, form, input, select, textarea") !== null)
    return false
  const links = [...block.querySelectorAll("h2 a, h3 a, h4 a, h5 a, h6 a")]
  return links.filter((link) => !isLinkWithinPage(link)).length < 2
}

const markText = (block: Node): void => {
  const isPlain = /^(?:DIV|SECTION)$/.test(block.tagName) && (block.getAttribute("class") ?? "") === ""
  if (isPlain && isText(block)) block.setAttribute("class", contentClass)
}

/**
 * Marks short sections as content. The extraction removes those with words of menus, such as a section "Sign in",
 * "Privacy" or "Context menus". Call it after {@link removeNames}: what still has a name may be no content.
 */
export const markSections = (page: Document): void => {
  const seen = new Set<Node>()
  const judged = new Set<Node>()
  for (const heading of page.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    for (let block = heading.parentElement; block !== null && !seen.has(block); block = block.parentElement) {
      seen.add(block)
      if (textOf(block).length > maxMarkedLength) break
      for (const inner of [block, ...block.querySelectorAll("div, section")]) {
        if (!judged.has(inner)) markText(inner)
        judged.add(inner)
      }
    }
  }
}
