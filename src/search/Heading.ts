/** Reduces Markdown to plain words for display. Code spans are kept as they are. */

/** A picture that is a link, such as the state of a build. */
const badge =
  /(`[^`]*`)|\[!\[[^\][]{0,200}\](?:\([^()]{0,2000}\)|\[[^\][]{0,200}\])\](?:\([^()]{0,2000}\)|\[[^\][]{0,200}\])/g
const image = /(`[^`]*`)|!\[([^\]]{0,200})\]\([^)]{0,2000}\)/g
const lineBreak = /(`[^`]*`)|<br\s{0,3}\/?>/gi
/** A tag. With a backslash before it, it is text. */
const tag = /(`[^`]*`)|(?<!\\)<\/?[a-z][a-z0-9-]{0,30}(?:\s[^<>]{0,500})?\/?>|<!--[^<>]{0,500}-->/gi
/** Notes are counted from 1, places of an array from 0. */
const footnote = /(`[^`]*`)|\[\^?[1-9]\d{0,2}\](?![([:])/g

/** Removes what cannot be shown as text: images, except for their descriptions, HTML tags and footnote marks. */
export const plainText = (text: string): string =>
  text
    .replace(badge, "$1")
    .replace(image, "$1$2")
    .replace(lineBreak, (_, code: string | undefined) => code ?? " ")
    .replace(tag, "$1")
    .replace(footnote, "$1")
    .replace(/[^\S\n]+/g, " ")
    .trim()

const link = /\[([^\][]{0,300})\](?:\([^()]{0,2000}\)|\[[^\][]{0,200}\])/g
/** `{#id}`, `{: #id .class }`. */
const attributes = /\{:?[ \t]{0,3}[#.][^{}]{0,200}\}$/
/** A # after a single letter is part of a name, as in C#. */
const anchor = /(?<!(?<![\p{L}\p{N}])\p{L})#$|[¶§]$/u
const emphasis =
  /(`[^`]*`)|(?<![\p{L}\p{N}\\])([*_]{1,3})(?=\S)([^*_]{1,200})(?<=[^\s\\])\2(?![\p{L}\p{N}])/gu
const escaped = /(`[^`]*`)|\\([!-/:-@[-`{-~])/g

/** Maximum number of UTF-16 units of a heading that are read. The rest is dropped. */
const maxLength = 2_000

/** A title or a heading as plain words: without anchors, links, tags, emphasis marks and backslashes of Markdown. */
export const cleanHeading = (heading: string): string =>
  plainText(heading.trim().slice(0, maxLength).toWellFormed().replace(attributes, ""))
    .replace(link, (_, words: string) => (/[\p{L}\p{N}]/u.test(words) ? words : ""))
    .trim()
    .replace(anchor, "")
    .replace(emphasis, "$1$3")
    .replace(escaped, "$1$2")
    .replace(/\s+/g, " ")
    .trim()
