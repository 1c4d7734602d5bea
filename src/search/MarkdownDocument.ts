/** The title and the text of a Markdown file. Front matter is not part of the text. */
import { cleanHeading } from "./Heading.ts"

/** In YAML keys, comments or the end follow its first line. A rule is followed by other text. In TOML it is `+++`. */
const frontMatter =
  /^(?:---[ \t]*\n(?=(?:#[^\n]*\n)*(?:[^\s:#-][^:\n]{0,200}:(?:\s|$)|---[ \t]*(?:\n|$)|\.\.\.))|\+\+\+[ \t]*\n)/

const frontMatterOf = (text: string): { readonly matter: string; readonly body: string } => {
  const opening = frontMatter.exec(text)
  if (opening === null) return { matter: "", body: text }
  const closingLine = opening[0].startsWith("+")
    ? /\n\+\+\+[ \t]*(?:\n|$)/g
    : /\n(?:---|\.\.\.)[ \t]*(?:\n|$)/g
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
  const [, title = ""] = /^title[ \t]*[:=](.*)$/im.exec(matter) ?? []
  return unquote(title.trim())
}

/** The text without the row of # that may close a heading, after white space only. */
const withoutClosingHashes = (text: string): string => {
  let end = text.length
  while (text.charAt(end - 1) === "#") end--
  return /\s/.test(text.charAt(end - 1)) ? text.slice(0, end) : text
}

const topHeading = /^# /
/** Marks of headings of any level. */
export const anyHeading = /^#{1,6}[ \t]/

/** The first heading outside code fences whose mark is `mark`, or that is underlined with `===`. */
const headingTitle = (body: string, mark: RegExp): string => {
  let fenced = false
  let previous = ""
  for (const line of body.split("\n")) {
    const text = line.trim()
    if (text.startsWith("```") || text.startsWith("~~~")) fenced = !fenced
    else if (!fenced && mark.test(text)) {
      const title = cleanHeading(withoutClosingHashes(text).replace(mark, ""))
      if (title !== "") return title
    } else if (!fenced && previous !== "" && text.length > 2 && text === "=".repeat(text.length))
      return cleanHeading(previous)
    previous = text
  }
  return ""
}

/**
 * The text has Unix line ends. `title` is that of the front matter, else of the first heading, which is a top-level one
 * unless `mark` says otherwise; empty without either.
 */
export const parseMarkdown = (
  file: string,
  mark = topHeading
): { readonly title: string; readonly text: string } => {
  const { matter, body } = frontMatterOf(file.replaceAll("\r\n", "\n"))
  return { title: matterTitle(matter) || headingTitle(body, mark), text: body }
}
