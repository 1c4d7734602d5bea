/**
 * Extracts the sender's own text from a mail: without quoted mails, the lines that introduce them, and the signature.
 * Each line is examined once, and only its beginning.
 */

/** Maximum length of a line that is examined. Lines of mail programs are shorter. */
const maxExaminedLength = 300

/** "-----Original Message-----" in any language. */
const originalMessage = /^-{2,} ?\p{L}[\p{L} ]{2,60} ?-{2,}$/u
/** Outlook's line above the headers of a quoted mail. */
const separator = /^_{20,}$/
/** The first of those headers, in common languages. */
const senderHeader = /^\*?(?:From|Von|De|Da|Van|Från|Fra|Od)\s?:\*? \S/
const otherHeader =
  /^\*?(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|Objet|À|Enviado|Para|Asunto|Inviato|Verzonden|Aan)\s?:/
const subjectHeader = /^\*?(?:Subject|Betreff|Objet|Asunto|Assunto|Oggetto|Onderwerp|Ämne|Emne|Temat)\s?:/
/** "Sent from my phone" */
const deviceSignature = /^(?:Sent from my |Get Outlook for |Von meinem .{2,60} gesendet|Gesendet von )/
const quotedLine = /^\s?>/

const isBlank = (line: string | undefined) => line === undefined || line.trim() === ""

const anyMatches = (form: RegExp, lines: ReadonlyArray<string>) => lines.some((line) => form.test(line))

/**
 * Whether the headers of a quoted mail begin here, without quote marks. They must contain an address or a subject,
 * because other texts contain "From:" and "To:" too, such as travel plans.
 */
const isQuotedHeader = (lines: ReadonlyArray<string>, at: number) => {
  const line = lines[at] ?? ""
  if (!senderHeader.test(line) || !anyMatches(otherHeader, lines.slice(at + 1, at + 4))) return false
  return line.includes("@") || anyMatches(subjectHeader, lines.slice(at + 1, at + 6))
}

/** Whether the sender's own text ends before this line. */
const endsOwnText = (lines: ReadonlyArray<string>, at: number): boolean => {
  const line = lines[at] ?? ""
  if (line.length > maxExaminedLength) return false
  // RFC 3676 requires a space after the dashes, which some programs remove.
  if (line === "--" || line === "-- ") return true
  if (originalMessage.test(line) || deviceSignature.test(line)) return true
  if (separator.test(line)) return senderHeader.test(lines[at + 1] ?? "")
  return isQuotedHeader(lines, at)
}

/**
 * Number of lines that introduce a quotation, such as "On Monday Ada wrote:" in any language: up to three lines that end
 * with a colon, directly above a quotation. 0 if there is no introduction here.
 */
const introductionLength = (lines: ReadonlyArray<string>, at: number): number => {
  for (let last = at; last < at + 3; last++) {
    const line = lines[last] ?? ""
    if (isBlank(line) || line.length > maxExaminedLength || quotedLine.test(line)) return 0
    if (!/:\s*$/.test(line.slice(-5))) continue
    const next = isBlank(lines[last + 1]) ? last + 2 : last + 1
    return quotedLine.test((lines[next] ?? "").slice(0, 2)) ? last + 1 - at : 0
  }
  return 0
}

/** The sender's own text. The whole text if nothing would remain, as for a mail forwarded without a comment. */
export const withoutQuotes = (text: string): string => {
  const lines = text.replaceAll("\r\n", "\n").split("\n")
  const kept: Array<string> = []
  for (let at = 0; at < lines.length && !endsOwnText(lines, at); at++) {
    const line = lines[at] ?? ""
    if (quotedLine.test(line.slice(0, 2))) continue
    const skipped = introductionLength(lines, at)
    if (skipped > 0) at += skipped - 1
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
