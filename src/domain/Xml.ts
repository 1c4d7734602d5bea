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
  readonly text: (text: string) => void
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

/** Calls the visitor for each tag and text, in order. */
export const scan = (xml: string, visitor: XmlVisitor): void => {
  for (let at = 0; at < xml.length;) {
    const open = xml.indexOf("<", at)
    if (open === -1) return
    if (open > at) visitor.text(unescape(xml.slice(at, open)))
    const section = commentOrCdata(xml, open)
    if (section !== undefined) {
      if (section.text !== "") visitor.text(section.text)
      at = section.end
      continue
    }
    const close = xml.indexOf(">", open)
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
