/**
 * Web pages: the article as Markdown, without menus, with tables and code; also the page's canonical address and its
 * links.
 */
import * as Effect from "effect/Effect"
import { Defuddle } from "defuddle/node"
import { parseHTML } from "linkedom"
import { urlOf } from "../../domain/Address.ts"
import { ParseError, type ParsedDocument } from "../DocumentParser.ts"
import type { Document } from "./Dom.ts"
import * as HtmlContent from "./HtmlContent.ts"
import { normalizeSpace, oneLine } from "./PlainText.ts"

/** The used members of a DOM node. */
interface Node {
  readonly nodeType: number
  readonly parentNode: Node | null
  readonly firstChild: Node | null
  readonly nextSibling: Node | null
  textContent: string | null
}
interface Element extends Node {
  readonly getAttribute: (name: string) => string | null
}
interface Page extends Node {
  readonly documentElement: Element
  readonly querySelector: (selector: string) => Element | null
  readonly querySelectorAll: (selector: string) => Iterable<Element>
}

type ReadPage = Page & Document

/** Maximum number of `<`. The extraction takes about two seconds per megabyte, and must end within the time-out. */
const maxTags = 400_000
/** Pages for people are not nested deeper. The extraction's time is quadratic in the depth. */
const maxDepth = 150
const maxLinks = 5_000
const maxRobotsCharacters = 2_000

const tooLarge = new ParseError({
  code: "too_large",
  message: "The page has too many elements to be read. Split it, or offer it as text or Markdown."
})

const unreadable = () =>
  new ParseError({ code: "malformed", message: "The page's markup could not be read." })

const countTags = (html: string): number => {
  let count = 0
  for (let at = html.indexOf("<"); at !== -1 && count <= maxTags; at = html.indexOf("<", at + 1)) count++
  return count
}

/** The next node after `node` and its children, below `root`, and how many levels up it is. */
const nextAfter = (node: Node, root: Node): { readonly next: Node | null; readonly up: number } => {
  let up = 0
  for (let here: Node | null = node; here !== null && here !== root; here = here.parentNode, up++) {
    if (here.nextSibling !== null) return { next: here.nextSibling, up }
  }
  return { next: null, up }
}

/**
 * Replaces elements below the maximum depth with their text. It is iterative, because an attacker chooses the depth.
 */
const flatten = (root: Node): void => {
  let depth = 0
  let node: Node | null = root
  while (node !== null) {
    const child: Node | null = node.firstChild
    if (child !== null && depth < maxDepth) {
      node = child
      depth++
    } else {
      if (child !== null) node.textContent = String(node.textContent)
      const { next, up }: ReturnType<typeof nextAfter> = nextAfter(node, root)
      node = next
      depth -= up
    }
  }
}

/** True when `tag` matches outside of comments. It must also match `<!--`. */
const isOutsideComments = (html: string, tag: RegExp): boolean => {
  for (let found = tag.exec(html); found !== null; found = tag.exec(html)) {
    if (found[0] !== "<!--") return true
    const end = html.indexOf("-->", tag.lastIndex)
    if (end === -1) return false
    tag.lastIndex = end
  }
  return false
}

/** Adds the root element that the extraction needs to a fragment. */
const withRoot = (html: string): string => {
  if (isOutsideComments(html, /<!--|<html[\s>]/gi)) return html
  return isOutsideComments(html, /<!--|<body[\s>]/gi)
    ? `<html>${html}</html>`
    : `<html><body>${html}</body></html>`
}

/**
 * Gives elements an end tag that only XHTML closes in their own tag. As HTML, all that follows would be their text.
 */
const withEndTags = (html: string): string =>
  /<\?xml\s|\sxmlns=["']http:\/\/www\.w3\.org\/1999\/xhtml["']/.test(html.slice(0, 2_048))
    ? html.replace(
        /<(script|style|title|textarea|iframe|noscript|noframes|noembed|xmp)(?=[\s/])([^<>]{0,4000})\/>/gi,
        "<$1$2></$1>"
      )
    : html

/**
 * Longer addresses are ignored, because no index can store them. Percent-encoding makes an address in another script up
 * to nine times as long.
 */
const maxAddressCharacters = 2_048

const absolute = (href: string | null, base: string | undefined): string | undefined => {
  const url = href === null || href.length > maxAddressCharacters ? null : urlOf(href.trim(), base)
  if (url === null) return undefined
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined
  url.hash = ""
  return url.href.length > maxAddressCharacters ? undefined : url.href
}

const linksOf = (page: Page, base: string | undefined): ReadonlyArray<string> => {
  const links = new Set<string>()
  for (const anchor of page.querySelectorAll("a[href]")) {
    const link = absolute(anchor.getAttribute("href"), base)
    if (link !== undefined) links.add(link)
    if (links.size === maxLinks) break
  }
  return [...links]
}

/** Undefined for a page without such an element. */
const robotsOf = (page: Page): string | undefined => {
  const values = [...page.querySelectorAll("meta[name][content]")]
    .filter((meta) => meta.getAttribute("name")?.trim().toLowerCase() === "robots")
    .map((meta) => meta.getAttribute("content"))
  return values.length === 0 ? undefined : values.join(",").slice(0, maxRobotsCharacters)
}

/** Site-specific extraction would send requests to other servers. None are allowed. */
const noFetch = () => Promise.reject(new Error("Documents are read offline"))

/**
 * `removeContentPatterns` would remove what looks like a date, a byline or an advertisement, such as `<time>` and lists
 * of short items, also where it is a value of a table or a part of a sentence.
 */
const extraction = { markdown: true, useAsync: false, fetch: noFetch, removeContentPatterns: false }

/** The address of a page without one. */
const noAddress = "about:blank"

/** The extraction puts this before the relative links of a page without an address. */
const noAddressPrefix = `](${noAddress}/`

const extractArticle = (page: Page, url: string | undefined) =>
  Effect.tryPromise({
    try: () => Defuddle(page, url ?? noAddress, extraction),
    catch: unreadable
  })

/** `url` is the address of the page. `title` is empty when the page has none. */
export const parseHtml = (
  html: string,
  url: string | undefined
): Effect.Effect<Omit<ParsedDocument, "mediaType">, ParseError> =>
  Effect.gen(function* () {
    if (countTags(html) > maxTags) return yield* tooLarge
    const page = yield* Effect.try({
      try: (): ReadPage => parseHTML(withRoot(withEndTags(html))).document,
      catch: unreadable
    })
    const base = absolute(page.querySelector("base[href]")?.getAttribute("href") ?? "", url) ?? url
    // Read before the extraction, which modifies the page.
    const links = linksOf(page, base)
    const canonical = absolute(
      page.querySelector('link[rel~="canonical"][href]')?.getAttribute("href") ?? null,
      base
    )
    const robots = robotsOf(page)
    const heading = oneLine(page.querySelector("h1")?.textContent ?? "")
    flatten(page.documentElement)
    HtmlContent.prepare(page)
    const { content, title } = yield* extractArticle(page, url)
    return {
      title: oneLine(HtmlContent.cleaned(title)) || heading,
      format: "markdown" as const,
      content: normalizeSpace(HtmlContent.cleaned(content.replaceAll(noAddressPrefix, "]("))),
      ...(canonical === undefined ? {} : { canonicalUrl: canonical }),
      ...(robots === undefined ? {} : { robots }),
      links
    }
  })
