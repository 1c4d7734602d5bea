/**
 * Names of elements. The extraction removes elements whose class or id contains one of several hundred texts, such as
 * `error-`, `profile`, `next-` or `date`, and so whole sections of documentation. Only names that say unmistakably what is
 * no content are left to it, and those that it needs to find content.
 */
import { type Document, isMainlyLinks, type Node, textOf } from "./Dom.ts"

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

/** True if the id was made of the heading of the element, as documentation generators do. */
const isAnchor = (node: Node, id: string): boolean => {
  const heading = node.firstElementChild
  if (id === "" || heading === null || !/^H[1-6]$/.test(heading.tagName) || noContentId.test(id)) return false
  return slugOf(textOf(heading).slice(0, maxHeadingLength)) === slugOf(id)
}

const isLinkWithinPage = (node: Node): boolean =>
  node.tagName === "A" && (node.getAttribute("href") ?? "").startsWith("#")

/** The text of a link that a generator adds to what can be linked to. */
const linkMark = /^[¶§#🔗\u200B]+$/u

/** A link of a sentence. Sphinx gives it the class of a reference, and the extraction removes those as footnotes. */
const isLinkOfText = (node: Node, names: string): boolean =>
  isLinkWithinPage(node) && /(?:^|\s)reference internal(?=$|\s)/.test(names) && /\p{L}/u.test(textOf(node))

/** Names of elements that the extraction removes, with values of any kind. */
const removedAttributes = ["data-date", "data-orientation"]

/**
 * Removes the names of elements that may be content, elements of links whose names say that they are none, and marks of
 * links within the page.
 */
export const removeNames = (page: Document): void => {
  for (const link of page.querySelectorAll("a[href]"))
    if (isLinkWithinPage(link) && linkMark.test(textOf(link))) link.remove()
  for (const node of page.querySelectorAll(selectorOf(removedAttributes)))
    for (const name of removedAttributes) node.removeAttribute(name)
  for (const node of page.querySelectorAll(selectorOf(nameAttributes))) {
    if (/^(?:HTML|HEAD|BODY)$/.test(node.tagName) || node.closest("code, pre") !== null) continue
    const id = node.getAttribute("id") ?? ""
    if (isAnchor(node, id)) node.removeAttribute("id")
    const namesOf = (attributes: ReadonlyArray<string>) =>
      attributes.map((name) => node.getAttribute(name) ?? "").join(" ")
    const names = namesOf(nameAttributes)
    const isSectionId = id.split(/[\s_-]+/).length > maxFrameIdWords
    if (isNoContent(isSectionId ? namesOf(attributesButId) : names)) {
      if (isMainlyLinks(node) && node.querySelector("h1, article, main") === null) node.remove()
      continue
    }
    if (!isLinkOfText(node, names) && neededNames.some((pattern) => pattern.test(names))) continue
    for (const name of nameAttributes) node.removeAttribute(name)
  }
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
 * Marks short sections as content. The extraction removes those with words of menus, such as a section "Sign in", "Privacy"
 * or "Context menus". Call it after {@link removeNames}: what still has a name may be no content.
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
