/** The first lines of notes and tabs in the Markdown of documentation generators, and how a reply shows them. */

/** Kinds of notes. A block of another kind, such as `code-group`, is shown without a label. */
const kinds = new Set(
  (
    "note tip hint info important warning caution danger attention success failure question example bug abstract quote " +
    "deprecated seealso"
  ).split(" ")
)

const boldLabel = (words: string): string => {
  const label = words.replaceAll("*", "").trim()
  return label === "" ? "" : `**${label.charAt(0).toUpperCase()}${label.slice(1)}:**`
}

/** `> [!NOTE]` of GitHub, and `> [!note] Title` of Obsidian, which is also that of notes in web pages. */
const alert = /^\s*\[!([a-z]{1,20})\][+-]?(.{0,300})$/i
/** `=== "Tab"` of Material for MkDocs. A row of `=` alone underlines a heading. */
const tab = /^\s*===[+!]?\s+"([^"]{1,200})"\s*$/
/** `!!! note "Title"` and `??? note` of Python-Markdown, `:::note Title` and `:::` of Docusaurus and VitePress. */
const note = /^\s*(?:(?:!!!|\?\?\?\+?)\s+|:{3,}\s*)(.{0,300})$/

/**
 * Returns the label that a reply shows for the line, in bold; empty for a line that only opens or closes a block; and
 * undefined for any other line.
 */
export const labelOf = (line: string): string | undefined => {
  const [, alertKind = "", alertTitle = ""] = alert.exec(line) ?? []
  if (alertKind !== "") return boldLabel(alertTitle.trim() || alertKind.toLowerCase())
  const [, tabName] = tab.exec(line) ?? []
  if (tabName !== undefined) return boldLabel(tabName)
  const [, rest] = note.exec(line) ?? []
  if (rest === undefined) return undefined
  const [, quoted, bracketed] = /"([^"]*)"|\[([^[\]]*)\]/.exec(rest) ?? []
  const [kind = "", ...words] = rest.replace(/[{}]/g, "").trim().split(/\s+/)
  const title = quoted ?? bracketed ?? words.join(" ")
  if (title !== "") return boldLabel(title)
  return kinds.has(kind.toLowerCase()) ? boldLabel(kind) : ""
}
