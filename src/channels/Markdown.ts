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
const code = /(`{1,3})([^`\n]+)\1/g
// None of these looks beyond the place where its next match may begin. Otherwise each opening mark would be searched to
// the end of its line, which takes quadratic time.
const links = /!?\[([^[\]\n]*)\]\(((?:(?!\]\()\S)+?)(?:\s+"[^"\n]*")?\)|https?:\/\/[^\s*<>[]+/g
const addresses = /https?:\/\/[^\s*<>[]+/g
const strongEmphasis = /\*\*\*(?=\S)((?:(?!\*\*\*).)+?)(?<=\S)\*\*\*/g
// Underscores within a word, such as in `two__words__here`, mark nothing.
const strong =
  /\*\*(?=\S)((?:(?!\*\*).)+?)(?<=\S)\*\*|(?<![\p{L}\p{N}_])__(?=\S)((?:(?!(?<![\p{L}\p{N}_])__(?=\S)).)+?)(?<=\S)__(?![\p{L}\p{N}_])/gu

/**
 * Private-use characters. The first stands for a strong mark until emphasis has been converted. The others stand for code
 * and addresses, which are not converted.
 */
const strongPlaceholder = "\ue000"
const codePlaceholder = "\ue005"
const addressPlaceholder = "\ue006"
const placeholders = /[\ue000\ue005\ue006]/g

const convertInline = (line: string, marks: Marks): string => {
  const codes: Array<string> = []
  const urls: Array<string> = []
  const holdCode = (_: string, _marks: string, text: string) => {
    codes.push(`${marks.code}${text}${marks.code}`)
    return codePlaceholder
  }
  const holdUrl = (url: string) => {
    urls.push(url)
    return addressPlaceholder
  }
  /** `found` is the whole match. Without a label it is a plain address. */
  const writeLink = (found: string, label: string | undefined, url: string | undefined) => {
    if (label === undefined || url === undefined) return holdUrl(found)
    return label.trim() === "" || label === url
      ? holdUrl(url)
      : `${label.replace(addresses, holdUrl)} (${holdUrl(url)})`
  }
  return line
    .replace(code, holdCode)
    .replace(citations, "")
    .replace(links, writeLink)
    .replace(strongEmphasis, `${strongPlaceholder}${marks.emphasis}$1${marks.emphasis}${strongPlaceholder}`)
    .replace(
      strong,
      (_: string, stars?: string, lines?: string) =>
        `${strongPlaceholder}${stars ?? lines ?? ""}${strongPlaceholder}`
    )
    .replace(/(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\w*])/g, `${marks.emphasis}$1${marks.emphasis}`)
    .replaceAll(strongPlaceholder, marks.strong)
    .replaceAll(addressPlaceholder, () => urls.shift() ?? "")
    .replaceAll(codePlaceholder, () => codes.shift() ?? "")
}

/** The text of a heading, without closing marks; undefined for any other line. */
const headingOf = (text: string): string | undefined => {
  const mark = /^#{1,6}\s+(?=\S)/.exec(text)?.[0]
  if (mark === undefined) return undefined
  let end = text.length
  while (end > mark.length + 1 && text.charAt(end - 1) === "#") end--
  return text.slice(mark.length, end).trimEnd()
}

const convertLine = (text: string, marks: Marks): string => {
  const heading = headingOf(text)
  if (heading !== undefined) {
    const plain = convertInline(heading, { ...marks, strong: "", emphasis: "" })
    return `${marks.strong}${plain}${marks.strong}`
  }
  return convertInline(text.replace(/^(\s*)[-*+]\s+/, "$1• "), marks)
}

/** A line that begins or ends a block of code. A line with further backticks contains inline code instead. */
const fenceLine = /^\s*`{3,}[^`]*$/

/** Converts Markdown to text with these marks. Code is not changed. */
export const markdownFormatter =
  (marks: Marks) =>
  (text: string): string => {
    let isCode = false
    const lines = text
      .replace(placeholders, "")
      .split("\n")
      .flatMap((each) => {
        if (!fenceLine.test(each)) return [isCode ? each : convertLine(each, marks)]
        isCode = !isCode
        return marks.fence === "" ? [] : [marks.fence]
      })
    return lines.join("\n").trim()
  }
