/**
 * Extracts a person's own text from a mail: without quoted mails, the lines that introduce them, and the signature.
 * Each line is examined once, and only its beginning.
 */

/** Maximum length of a line that is examined. Lines of mail programs are shorter. */
const maxMarkLength = 300

/** "-----Original Message-----" in any language. */
const original = /^-{2,} ?\p{L}[\p{L} ]{2,60} ?-{2,}$/u
/** Outlook's line above the headers of a quoted mail. */
const rule = /^_{20,}$/
/** The first of those headers, in common languages. */
const sender = /^\*?(?:From|Von|De|Da|Van|Från|Fra|Od)\s?:\*? \S/
const others =
  /^\*?(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|Objet|À|Enviado|Para|Asunto|Inviato|Verzonden|Aan)\s?:/
const subject = /^\*?(?:Subject|Betreff|Objet|Asunto|Assunto|Oggetto|Onderwerp|Ämne|Emne|Temat)\s?:/
/** "Sent from my phone" */
const device = /^(?:Sent from my |Get Outlook for |Von meinem .{2,60} gesendet|Gesendet von )/
const quotedLine = /^\s?>/

const isBlank = (line: string | undefined) => line === undefined || line.trim() === ""

const isOneOf = (form: RegExp, lines: ReadonlyArray<string>) => lines.some((line) => form.test(line))

/**
 * Whether the headers of a quoted mail begin here, without quote marks. They have an address or a subject: a journey
 * has "From:" and "To:", too.
 */
const isForeignHeader = (lines: ReadonlyArray<string>, at: number) => {
  const line = lines[at] ?? ""
  if (!sender.test(line) || !isOneOf(others, lines.slice(at + 1, at + 4))) return false
  return line.includes("@") || isOneOf(subject, lines.slice(at + 1, at + 6))
}

const isEnd = (lines: ReadonlyArray<string>, at: number): boolean => {
  const line = lines[at] ?? ""
  if (line.length > maxMarkLength) return false
  // RFC 3676 requires a space after the dashes, which some programs remove.
  if (line === "--" || line === "-- ") return true
  if (original.test(line) || device.test(line)) return true
  if (rule.test(line)) return sender.test(lines[at + 1] ?? "")
  return isForeignHeader(lines, at)
}

/** "On Monday Ada wrote:" in any language: up to three lines that end with a colon, directly above a quotation. */
const introduction = (lines: ReadonlyArray<string>, at: number): number => {
  for (let last = at; last < at + 3; last++) {
    const line = lines[last] ?? ""
    if (isBlank(line) || line.length > maxMarkLength || quotedLine.test(line)) return 0
    if (!/:\s*$/.test(line.slice(-5))) continue
    const next = isBlank(lines[last + 1]) ? last + 2 : last + 1
    return quotedLine.test((lines[next] ?? "").slice(0, 2)) ? last + 1 - at : 0
  }
  return 0
}

/** The whole text if nothing else would remain, as for a mail forwarded without a comment. */
export const withoutQuotes = (text: string): string => {
  const lines = text.replaceAll("\r\n", "\n").split("\n")
  const kept: Array<string> = []
  for (let at = 0; at < lines.length && !isEnd(lines, at); at++) {
    const line = lines[at] ?? ""
    if (quotedLine.test(line.slice(0, 2))) continue
    const introduced = introduction(lines, at)
    if (introduced > 0) at += introduced - 1
    else kept.push(line)
  }
  const ownText = kept.join("\n").trim()
  return ownText === "" ? text.trim() : ownText.replace(/\n{3,}/g, "\n\n")
}

/** Elements in which mail programs begin quoted HTML. */
const htmlQuote =
  /<(?:blockquote\b|div[^<>]{0,200}(?:gmail_quote|yahoo_quoted|divRplyFwdMsg|appendonsend|moz-cite-prefix))/i

/** The HTML before the first quotation. */
export const unquotedHtml = (html: string): string => {
  const { index = html.length } = htmlQuote.exec(html) ?? {}
  return index === 0 ? html : html.slice(0, index)
}
