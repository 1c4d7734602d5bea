/**
 * Parses sitemaps: an index or a list of pages, as XML or as plain lines, in one pass, without custom entities. The
 * generator yields undefined where the caller may pause.
 */
import { urlOf } from "../domain/Address.ts"
import { unescape } from "../domain/Xml.ts"
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

const elementText = (raw: string): string => {
  const text = raw.trim()
  if (text.startsWith("<![CDATA[") && text.endsWith("]]>")) return text.slice(9, -3).trim()
  return unescape(text)
}

interface Location {
  readonly url: string
  readonly modified: string | null
}

/** Where the content of the next element `name` begins; -1 when there is none. */
const contentStart = (xml: string, name: string, from: number): number => {
  for (let at = xml.indexOf(`<${name}`, from); at !== -1; at = xml.indexOf(`<${name}`, at + 1)) {
    const end = at + name.length + 1
    if (xml.charAt(end) === ">") return end + 1
    // A longer name is another element.
    if (/\s/.test(xml.charAt(end))) return xml.indexOf(">", end) + 1 || -1
  }
  return -1
}

/** The `lastmod` of a `loc` that ends at `from`: before the next `loc` and before the end of the entry. */
const modifiedAfter = (xml: string, prefix: string, from: number): string | null => {
  // The bound keeps the parser linear. An entry has four short members.
  const rest = xml.slice(from, from + 1_024)
  const ends = [`</${prefix}url`, `</${prefix}sitemap`, `<${prefix}loc`].map((mark) => rest.indexOf(mark))
  const entry = rest.slice(0, Math.min(...ends.filter((end) => end !== -1)))
  const start = contentStart(entry, `${prefix}lastmod`, 0)
  const end = entry.indexOf(`</${prefix}lastmod`, start)
  return start === -1 || end === -1 ? null : elementText(entry.slice(start, Math.min(end, start + 64)))
}

/** Entries that are commented out are not in the sitemap. */
function* withoutComments(xml: string): Generator<undefined, string> {
  const parts: Array<string> = []
  let at = 0
  for (let open = xml.indexOf("<!--"); open !== -1; open = xml.indexOf("<!--", at)) {
    parts.push(xml.slice(at, open))
    const end = xml.indexOf("-->", open + 4)
    at = end === -1 ? xml.length : end + 3
    if (parts.length % pauseLocations === 0) yield undefined
  }
  return parts.length === 0 ? xml : parts.join("") + xml.slice(at)
}

/** The contents of `loc` elements with the prefix of the root. Others, such as `image:loc`, are ignored. */
function* locationsIn(xml: string, prefix: string): Generator<undefined, ReadonlyArray<Location>> {
  const found: Array<Location> = []
  const name = `${prefix}loc`
  for (
    let start = contentStart(xml, name, 0);
    start !== -1 && found.length < maxLocations;
    start = contentStart(xml, name, start)
  ) {
    const end = xml.indexOf(`</${name}`, start)
    if (end === -1) break
    found.push({ url: elementText(xml.slice(start, end)), modified: modifiedAfter(xml, prefix, end) })
    start = end
    if (found.length % pauseLocations === 0) yield undefined
  }
  return found
}

/** The first non-empty lines, up to the limit of locations. */
const nonEmptyLines = (text: string): ReadonlyArray<string> => {
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

const isHttpUrl = (text: string): boolean => {
  const url = text.length > maxAddress ? null : urlOf(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.href.length <= maxAddress
}

function* sitemapOf(kind: Sitemap["kind"], found: ReadonlyArray<Location>): Generator<undefined, Sitemap> {
  const locations: Array<string> = []
  const modified = new Map<string, string>()
  for (const [place, location] of found.entries()) {
    if (place % pauseLocations === pauseLocations - 1) yield undefined
    if (!isHttpUrl(location.url)) continue
    const url = withoutFragment(location.url)
    locations.push(url)
    if (location.modified !== null) modified.set(url, location.modified)
  }
  return { kind, locations, modified }
}

/**
 * The absolute http and https URLs of a sitemap, without fragments; undefined when the text is none. Step by step, so
 * that the caller can pause.
 */
export function* sitemapSteps(text: string): Generator<undefined, Sitemap | undefined> {
  const head = text.slice(0, 16_384)
  const [, prefix = "", root] = /<([\w.-]{1,40}:)?(sitemapindex|urlset)[\s>]/.exec(head) ?? []
  if (root !== undefined) {
    const locations = yield* locationsIn(yield* withoutComments(text), prefix)
    return yield* sitemapOf(root === "urlset" ? "pages" : "index", locations)
  }
  if (head.trimStart().startsWith("<")) return undefined
  const lines = nonEmptyLines(text)
  if (lines.length === 0) return undefined
  for (const [place, line] of lines.entries()) {
    if (place % pauseLocations === pauseLocations - 1) yield undefined
    if (!isHttpUrl(line)) return undefined
  }
  const listed = lines.map((url) => ({ url, modified: null }))
  return yield* sitemapOf("pages", listed)
}
