/** The sitemap protocol: an index or a list of pages, as XML or as plain lines. One pass, no entities of its own. */
import { withoutFragment } from "./Fetch.ts"

export interface Sitemap {
  readonly kind: "index" | "pages"
  readonly locations: ReadonlyArray<string>
}

/** The protocol's own limit. */
const maxLocations = 50_000

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

/** What stands between `<loc>` and `</loc>`; names with another prefix, such as `image:loc`, are other things. */
const locationsIn = (xml: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (
    let at = xml.indexOf("<loc>");
    at !== -1 && found.length < maxLocations;
    at = xml.indexOf("<loc>", at)
  ) {
    const end = xml.indexOf("</loc>", at)
    if (end === -1) break
    found.push(textOf(xml.slice(at + 5, end)))
    at = end
  }
  return found
}

const isHttp = (text: string): boolean =>
  text.length <= 2_048 && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

const normalized = (locations: ReadonlyArray<string>): ReadonlyArray<string> =>
  locations.filter(isHttp).map(withoutFragment)

/** Undefined when the text is no sitemap; absolute http and https URLs without fragments otherwise. */
export const parseSitemap = (text: string): Sitemap | undefined => {
  const head = text.slice(0, 16_384)
  const root = /<(sitemapindex|urlset)[\s>]/.exec(head)?.[1]
  if (root !== undefined) {
    return { kind: root === "urlset" ? "pages" : "index", locations: normalized(locationsIn(text)) }
  }
  if (head.trimStart().startsWith("<")) return undefined
  const lines = text.split(/\r\n|\n|\r/).map((line) => line.trim())
  const written = lines.filter((line) => line !== "")
  if (written.length === 0 || !written.every(isHttp)) return undefined
  return { kind: "pages", locations: normalized(written.slice(0, maxLocations)) }
}
