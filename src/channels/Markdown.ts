/**
 * Converts a model's Markdown to a messenger's format: links are written out, headings and emphasis as far as the
 * channel supports them. Citation marks are removed, because a contact has no list of sources.
 */

/** The marks of a channel for emphasis and code. */
export interface Marks {
  readonly strong: string
  readonly emphasis: string
  readonly code: string
  readonly fence: string
}

const citations = / ?\[\d{1,3}\](?:\[\d{1,3}\])*(?!\(|:)/g
// Lengths are bounded. Otherwise each opening bracket would be searched to the end of its line, which takes quadratic
// time.
const link = /!?\[([^\]\n]{0,500})\]\((\S{1,2048}?)(?:\s{1,8}"[^"\n]{0,300}")?\)/g
const strong = /(?:\*\*|__)(?=\S)(.{1,1000}?)(?<=\S)(?:\*\*|__)/g
const written = (_: string, label: string, url: string) =>
  label.trim() === "" || label === url ? url : `${label} (${url})`

/** A private-use character that replaces a strong mark until emphasis has been processed. */
const placeholder = "\ue000"

const inline = (line: string, marks: Marks): string =>
  line
    .replace(citations, "")
    .replace(link, written)
    .replace(strong, `${placeholder}$1${placeholder}`)
    .replace(/(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\w*])/g, `${marks.emphasis}$1${marks.emphasis}`)
    .replaceAll(placeholder, marks.strong)
    .replace(/`([^`\n]+)`/g, `${marks.code}$1${marks.code}`)

/** The text of a heading, without closing marks; undefined for any other line. */
const headingOf = (text: string): string | undefined => {
  const mark = /^#{1,6}\s+(?=\S)/.exec(text)?.[0]
  if (mark === undefined) return undefined
  let end = text.length
  while (end > mark.length + 1 && text.charAt(end - 1) === "#") end--
  return text.slice(mark.length, end).trimEnd()
}

const line = (text: string, marks: Marks): string => {
  const heading = headingOf(text)
  if (heading !== undefined) {
    const plain = inline(heading, { ...marks, strong: "", emphasis: "" })
    return `${marks.strong}${plain}${marks.strong}`
  }
  return inline(text.replace(/^(\s*)[-*+]\s+/, "$1• "), marks)
}

/** Fenced code is not changed. */
export const shownAs =
  (marks: Marks) =>
  (text: string): string => {
    let code = false
    const lines = text
      .replaceAll(placeholder, "")
      .split("\n")
      .flatMap((each) => {
        if (!/^\s*```/.test(each)) return [code ? each : line(each, marks)]
        code = !code
        return marks.fence === "" ? [] : [marks.fence]
      })
    return lines.join("\n").trim()
  }
