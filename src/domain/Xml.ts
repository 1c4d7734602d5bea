/**
 * Reads XML in one pass: tags and text in order. Document type declarations are ignored, so no entity is expanded.
 * Input that is not well-formed is skipped.
 */
const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }

/** Resolves the five entities of XML and numeric ones; others stay as they are. */
export const unescape = (text: string): string =>
  text.includes("&")
    ? text.replace(
        /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,4}));/gi,
        (whole, decimal, hexadecimal, name) => {
          if (name !== undefined) return entities[String(name)] ?? whole
          const code = decimal === undefined ? Number.parseInt(String(hexadecimal), 16) : Number(decimal)
          return code <= 0x10ffff ? String.fromCodePoint(code) : whole
        }
      )
    : text

/** Names come without their prefix; `tag` is the text between `<` and `>`. An empty element opens and closes. */
export interface XmlVisitor {
  readonly open: (name: string, tag: string) => void
  readonly close: (name: string) => void
  /** `written` is the text with its entities as they are in the document; undefined for a CDATA section. */
  readonly text: (text: string, written?: string) => void
}

const nameOf = (tag: string): string => /^\/?(?:[\w.-]{1,40}:)?([\w.-]{1,60})/.exec(tag)?.[1] ?? ""

/** The end of the comment or CDATA section that begins at `open`, and the text of the latter; undefined for a tag. */
const commentOrCdata = (
  xml: string,
  open: number
): { readonly end: number; readonly text: string } | undefined => {
  const mark = xml.startsWith("<!--", open) ? "-->" : xml.startsWith("<![CDATA[", open) ? "]]>" : undefined
  if (mark === undefined) return undefined
  const end = xml.indexOf(mark, open)
  if (end === -1) return { end: xml.length, text: "" }
  return { end: end + mark.length, text: mark === "]]>" ? xml.slice(open + 9, end) : "" }
}

/**
 * The `>` that ends the tag at `open`, and is in no quoted value; -1 when there is none. A value has no `<`, so a quote
 * without an end is a character like others.
 */
const tagEnd = (xml: string, open: number): number => {
  let quoteStart = -1
  for (let at = open + 1; at < xml.length; at++) {
    const character = xml.charAt(at)
    if (quoteStart === -1) {
      if (character === ">") return at
      if (character === '"' || character === "'") quoteStart = at
    } else if (character === "<") break
    else if (character === xml.charAt(quoteStart)) quoteStart = -1
  }
  return quoteStart === -1 ? -1 : xml.indexOf(">", quoteStart)
}

/** Number of tags between two points where the caller may pause: less than a millisecond. */
const pauseTags = 500

/** Like {@link scan}, step by step, so that the caller can pause. */
export function* scanSteps(xml: string, visitor: XmlVisitor): Generator<undefined, void> {
  let tags = 0
  for (let at = 0; at < xml.length;) {
    const open = xml.indexOf("<", at)
    if (open === -1) return
    if (open > at) {
      const written = xml.slice(at, open)
      visitor.text(unescape(written), written)
    }
    if (++tags % pauseTags === 0) yield undefined
    const section = commentOrCdata(xml, open)
    if (section !== undefined) {
      if (section.text !== "") visitor.text(section.text)
      at = section.end
      continue
    }
    const close = tagEnd(xml, open)
    if (close === -1) return
    const tag = xml.slice(open + 1, close)
    const name = nameOf(tag)
    if (name !== "") {
      if (tag.startsWith("/")) visitor.close(name)
      else {
        visitor.open(name, tag)
        if (tag.endsWith("/")) visitor.close(name)
      }
    }
    at = close + 1
  }
}

/** Calls the visitor for each tag and text, in order. */
export const scan = (xml: string, visitor: XmlVisitor): void => {
  const steps = scanSteps(xml, visitor)
  while (steps.next().done !== true);
}

const attributePatterns = new Map<string, RegExp>()

/**
 * The attribute's value, or empty. `name` is matched with its prefix; `*:id` matches any prefix, but not a missing one.
 */
export const attribute = (tag: string, name: string): string => {
  const known = attributePatterns.get(name)
  const pattern =
    known ??
    new RegExp(`\\s${name.replace("*", "[\\w.-]{1,40}")}[ \\t]?=[ \\t]?(?:"([^"]{0,4000})"|'([^']{0,4000})')`)
  if (known === undefined) attributePatterns.set(name, pattern)
  const [, double, single] = pattern.exec(tag) ?? []
  return unescape(double ?? single ?? "")
}
