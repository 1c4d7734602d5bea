/**
 * The Markdown that models write, as a tree of what may be shown: no HTML, no images, and links to the web or to a mailbox
 * alone (guarantee G33). Dashboard and widget make elements of it; whatever is not understood stays text.
 */

export type Inline =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "strong" | "emphasis"; readonly content: ReadonlyArray<Inline> }
  | { readonly kind: "link"; readonly href: string; readonly text: string }
  /** `[3]`: the third citation. */
  | { readonly kind: "citation"; readonly index: number }
  | { readonly kind: "break" }

export type Block =
  | { readonly kind: "paragraph" | "heading"; readonly content: ReadonlyArray<Inline> }
  | { readonly kind: "list"; readonly ordered: boolean; readonly items: ReadonlyArray<ReadonlyArray<Inline>> }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "quote"; readonly content: ReadonlyArray<Inline> }
  | {
      readonly kind: "table"
      readonly head: ReadonlyArray<ReadonlyArray<Inline>>
      readonly rows: ReadonlyArray<ReadonlyArray<ReadonlyArray<Inline>>>
    }

/** Depth to which emphasis may be nested: replies of models need two. */
const depthLimit = 4

/** The address as it may be linked; null for every scheme that could do something here. */
export const safeHref = (address: string): string | null => {
  const text = address.trim()
  if (!/^(?:https?:\/\/|mailto:)[^\s<>"'`\\]+$/i.test(text)) return null
  try {
    const { href, protocol } = new URL(text)
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null
  } catch {
    return null
  }
}

const pattern =
  /(?<code>`+)(?<codeText>[^`\n]+?)\k<code>|!?\[(?<label>[^[\]\n]{1,500})\]\((?<target>[^()\s]{1,2048})\)|\[(?<citation>\d{1,3})\]|\*\*(?<strong>[^\n]+?)\*\*(?!\*)|(?<![\w*])\*(?<star>[^*\n]+?)\*(?![\w*])|(?<!\w)_(?<under>(?:[^_\n]|(?<=\w)_(?=\w))+?)_(?!\w)|(?<bare>https?:\/\/[^\s<>"'`\\()[\]{}]+[^\s<>"'`\\()[\]{}.,:;!?*_])/gu

const linkOf = (label: string, target: string, whole: string): Inline => {
  const href = safeHref(target)
  return href === null ? { kind: "text", text: whole } : { kind: "link", href, text: label }
}

/** The parts of one run of text. */
export const inline = (text: string, depth = 0): ReadonlyArray<Inline> => {
  const found: Array<Inline> = []
  let at = 0
  const plain = (part: string) => {
    part.split("\n").forEach((line, row) => {
      if (row > 0) found.push({ kind: "break" })
      if (line !== "") found.push({ kind: "text", text: line })
    })
  }
  for (const match of text.matchAll(pattern)) {
    plain(text.slice(at, match.index))
    at = match.index + match[0].length
    const groups = match.groups ?? {}
    const emphasis = groups["star"] ?? groups["under"]
    const deeper = (part: string): ReadonlyArray<Inline> =>
      depth < depthLimit ? inline(part, depth + 1) : [{ kind: "text", text: part }]
    if (groups["codeText"] !== undefined) found.push({ kind: "code", text: groups["codeText"] })
    else if (groups["label"] !== undefined) {
      found.push(linkOf(groups["label"], groups["target"] ?? "", match[0]))
    } else if (groups["citation"] !== undefined) {
      found.push({ kind: "citation", index: Number(groups["citation"]) })
    } else if (groups["strong"] !== undefined) {
      found.push({ kind: "strong", content: deeper(groups["strong"]) })
    } else if (emphasis !== undefined) found.push({ kind: "emphasis", content: deeper(emphasis) })
    else found.push(linkOf(match[0], match[0], match[0]))
  }
  plain(text.slice(at))
  return found
}

const bullet = /^\s{0,6}(?:[-*+•]|(?<number>\d{1,9})[.)])\s+(?<text>.*)$/u
const rule = /^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$/u

const cells = (line: string) =>
  line
    .trim()
    .replace(/^\||\|$/gu, "")
    .split("|")
    .map((cell) => inline(cell.trim()))

/** True for a line that ends the paragraph before it. */
const begins = (line: string, next: string | undefined) =>
  line.trim() === "" ||
  /^\s{0,3}(?:```|~~~|#{1,6}\s|>)/u.test(line) ||
  bullet.test(line) ||
  (line.includes("|") && next !== undefined && rule.test(next) && next.includes("-"))

/** The blocks of a reply, also of one that is still being written. */
export const blocks = (markdown: string): ReadonlyArray<Block> => {
  const lines = markdown.replaceAll("\r\n", "\n").split("\n")
  const found: Array<Block> = []
  let at = 0
  const take = (fits: (line: string) => boolean) => {
    const from = at
    while (at < lines.length && fits(lines[at] ?? "")) at++
    return lines.slice(from, at)
  }
  while (at < lines.length) {
    const line = lines[at] ?? ""
    const fence = /^\s{0,3}(```+|~~~+)/u.exec(line)?.[1]
    if (line.trim() === "") at++
    else if (fence !== undefined) {
      at++
      const code = take((inside) => !inside.trimStart().startsWith(fence))
      at++
      found.push({ kind: "code", text: code.join("\n") })
    } else if (/^\s{0,3}#{1,6}\s/u.test(line)) {
      at++
      found.push({ kind: "heading", content: inline(line.replace(/^\s*#+\s+|\s+#+\s*$/gu, "")) })
    } else if (/^\s{0,3}>/u.test(line)) {
      const quoted = take((inside) => /^\s{0,3}>/u.test(inside))
      found.push({
        kind: "quote",
        content: inline(quoted.map((inside) => inside.replace(/^\s*>\s?/u, "")).join("\n"))
      })
    } else if (bullet.test(line)) {
      const ordered = bullet.exec(line)?.groups?.["number"] !== undefined
      const items: Array<string> = []
      for (const item of take((inside) => bullet.test(inside) || /^\s{2,}\S/u.test(inside))) {
        const text = bullet.exec(item)?.groups?.["text"]
        if (text === undefined) items.push(`${items.pop() ?? ""}\n${item.trim()}`)
        else items.push(text)
      }
      found.push({ kind: "list", ordered, items: items.map((item) => inline(item)) })
    } else if (line.includes("|") && rule.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      at += 2
      const rows = take((inside) => inside.includes("|"))
      found.push({ kind: "table", head: cells(line), rows: rows.map(cells) })
    } else {
      const from = at++
      while (at < lines.length && !begins(lines[at] ?? "", lines[at + 1])) at++
      found.push({ kind: "paragraph", content: inline(lines.slice(from, at).join("\n")) })
    }
  }
  return found
}
