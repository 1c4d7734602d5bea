/**
 * Parses sitemaps: an index or a list of pages, as XML or as plain lines, in one pass, without custom entities. The
 * generator yields undefined where the caller may pause.
 */
import { urlOf } from "../domain/Address.ts"
import { withoutFragment } from "./Fetch.ts"

export interface Sitemap {
  readonly kind: "index" | "pages"
  readonly locations: ReadonlyArray<string>
  /** `lastmod` of the locations that have one, unparsed. */
  readonly modified: ReadonlyMap<string, string>
}

/** The protocol's limit. */
const maxLocations = 50_000

/** Number of locations between two points where the caller may pause: about a millisecond. */
const pauseLocations = 250

/** Maximum number of characters between two line feeds that are read. */
const maxLineCharacters = 4_194_304

const entities: ReadonlyArray<readonly [string, string]> = [
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", '"'],
  ["&apos;", "'"],
  ["&#39;", "'"],
  ["&#38;", "&"],
  ["&#x26;", "&"],
  ["&amp;", "&"]
]

const textOf = (raw: string): string => {
  const text = raw.trim()
  if (text.startsWith("<![CDATA[") && text.endsWith("]]>")) return text.slice(9, -3).trim()
  return entities.reduce((rest, [escape, character]) => rest.replaceAll(escape, character), text)
}

interface Location {
  readonly url: string
  readonly modified: string | null
}

/** The `lastmod` of a `loc` that ends at `from`: before the next `loc` and before the end of the entry. */
const modifiedAfter = (xml: string, from: number): string | null => {
  const next = xml.indexOf("<loc>", from)
  // The bound keeps the parser linear. An entry has four short members.
  const entry = xml.slice(from, Math.min(next === -1 ? xml.length : next, from + 1_024))
  const text = /^(?:(?!<\/(?:url|sitemap)>)[\s\S])*?<lastmod>([^<]{1,64})<\/lastmod>/.exec(entry)?.[1]
  return text === undefined ? null : textOf(text)
}

/** The contents of `<loc>` elements. Other prefixes, such as `image:loc`, are ignored. */
function* locationsIn(xml: string): Generator<undefined, ReadonlyArray<Location>> {
  const found: Array<Location> = []
  for (
    let at = xml.indexOf("<loc>");
    at !== -1 && found.length < maxLocations;
    at = xml.indexOf("<loc>", at)
  ) {
    const end = xml.indexOf("</loc>", at)
    if (end === -1) break
    found.push({ url: textOf(xml.slice(at + 5, end)), modified: modifiedAfter(xml, end) })
    at = end
    if (found.length % pauseLocations === 0) yield undefined
  }
  return found
}

/** The first non-empty lines, up to the limit of locations. */
const linesIn = (text: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (let at = 0; at < text.length && lines.length < maxLocations;) {
    const feed = text.indexOf("\n", at)
    const end = feed === -1 ? text.length : feed
    // A line may also end with a carriage return only, as on old systems.
    for (const line of text.slice(at, Math.min(end, at + maxLineCharacters)).split("\r")) {
      if (line.trim() !== "") lines.push(line.trim())
    }
    at = end + 1
  }
  return lines
}

const maxAddress = 2_048

const isHttp = (text: string): boolean => {
  const url = text.length > maxAddress ? null : urlOf(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.href.length <= maxAddress
}

function* sitemapOf(kind: Sitemap["kind"], found: ReadonlyArray<Location>): Generator<undefined, Sitemap> {
  const locations: Array<string> = []
  const modified = new Map<string, string>()
  for (const [place, location] of found.entries()) {
    if (place % pauseLocations === pauseLocations - 1) yield undefined
    if (!isHttp(location.url)) continue
    const url = withoutFragment(location.url)
    locations.push(url)
    if (location.modified !== null) modified.set(url, location.modified)
  }
  return { kind, locations, modified }
}

/** Like {@link parseSitemap}, with pauses. */
export function* parsingSitemap(text: string): Generator<undefined, Sitemap | undefined> {
  const head = text.slice(0, 16_384)
  const root = /<(sitemapindex|urlset)[\s>]/.exec(head)?.[1]
  if (root !== undefined) {
    return yield* sitemapOf(root === "urlset" ? "pages" : "index", yield* locationsIn(text))
  }
  if (head.trimStart().startsWith("<")) return undefined
  const written = linesIn(text)
  if (written.length === 0) return undefined
  for (const [place, line] of written.entries()) {
    if (place % pauseLocations === pauseLocations - 1) yield undefined
    if (!isHttp(line)) return undefined
  }
  const listed = written.map((url) => ({ url, modified: null }))
  return yield* sitemapOf("pages", listed)
}

/** Undefined when the text is not a sitemap; otherwise absolute http and https URLs without fragments. */
export const parseSitemap = (text: string): Sitemap | undefined => {
  const parsing = parsingSitemap(text)
  for (;;) {
    const { done, value } = parsing.next()
    if (done === true) return value
  }
}
