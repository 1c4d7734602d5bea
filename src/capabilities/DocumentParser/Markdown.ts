/** Markdown: front matter becomes metadata, the rest is the unchanged content. */
import { cleanHeading } from "../../search/Heading.ts"
import type { ParsedDocument } from "../DocumentParser.ts"
import { normalizeSpace } from "./PlainText.ts"

/** Keys, comments or the end follow its first line. A rule is followed by other text. */
const frontMatter =
  /^---[ \t]*\n(?=(?:#[^\n]*\n)*(?:[^\s:#-][^:\n]{0,200}:(?:\s|$)|---[ \t]*(?:\n|$)|\.\.\.))/

const frontMatterOf = (text: string): { readonly matter: string; readonly body: string } => {
  const opening = frontMatter.exec(text)
  if (opening === null) return { matter: "", body: text }
  const closingLine = /\n(?:---|\.\.\.)[ \t]*(?:\n|$)/g
  closingLine.lastIndex = opening[0].length - 1
  const found = closingLine.exec(text)
  if (found === null) return { matter: "", body: text }
  return {
    matter: text.slice(opening[0].length, found.index),
    body: text.slice(found.index + found[0].length)
  }
}

const unquote = (value: string): string => {
  const quote = value.charAt(0)
  return (quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote)
    ? value.slice(1, -1)
    : value
}

const matterTitle = (matter: string): string => {
  for (const line of matter.split("\n")) {
    if (line.toLowerCase().startsWith("title:")) return unquote(line.slice("title:".length).trim())
  }
  return ""
}

/** The text without the row of # that may close a heading, after white space only. */
const withoutClosingHashes = (text: string): string => {
  let end = text.length
  while (text.charAt(end - 1) === "#") end--
  return /\s/.test(text.charAt(end - 1)) ? text.slice(0, end) : text
}

/** The first top-level heading outside code fences, as `# …` or underlined with `===`. */
const headingTitle = (body: string): string => {
  let fenced = false
  let previous = ""
  for (const line of body.split("\n")) {
    const text = line.trim()
    if (text.startsWith("```") || text.startsWith("~~~")) fenced = !fenced
    else if (!fenced && text.startsWith("# ")) {
      const title = cleanHeading(withoutClosingHashes(text).slice(2))
      if (title !== "") return title
    } else if (!fenced && previous !== "" && text.length > 2 && text === "=".repeat(text.length))
      return cleanHeading(previous)
    previous = text
  }
  return ""
}

/** `title` is empty when the text has none. */
export const parseMarkdown = (text: string): Pick<ParsedDocument, "title" | "format" | "content"> => {
  const { matter, body } = frontMatterOf(text.replaceAll("\r\n", "\n"))
  return {
    title: matterTitle(matter) || headingTitle(body),
    format: "markdown",
    content: normalizeSpace(body)
  }
}
