/** Parses one document of any kind. The worker thread runs it for each message. */
import * as Effect from "effect/Effect"
import { urlOf } from "../../domain/Address.ts"
import { sanitize } from "../../domain/Text.ts"
import { parseMarkdown } from "../../search/MarkdownDocument.ts"
import { type ParsedDocument, ParseError, type ParseLimits, type ParseRequest } from "../DocumentParser.ts"
import { parseDocx } from "./Docx.ts"
import { parseEpub } from "./Epub.ts"
import { parseHtml } from "./Html.ts"
import { parsePdf } from "./Pdf.ts"
import { normalizeSpace, oneLine, parseCsv, parseJson, parseText } from "./PlainText.ts"
import { parsePptx } from "./Pptx.ts"
import { maxMarkupRatio, sniff, type Sniffed, tooLong } from "./Sniff.ts"
import { parseXlsx } from "./Xlsx.ts"

type ReadDocument = Omit<ParsedDocument, "mediaType" | "title"> & { readonly title?: string }

const read = (
  sniffed: Sniffed,
  { bytes, url }: ParseRequest,
  limits: ParseLimits
): Effect.Effect<ReadDocument, ParseError> => {
  switch (sniffed.kind) {
    case "pdf":
      return parsePdf(bytes, limits)
    case "docx":
      return parseDocx(bytes)
    case "xlsx":
      return parseXlsx(bytes, limits)
    case "pptx":
      return parsePptx(bytes, limits)
    case "epub":
      return parseEpub(bytes, limits)
    case "html":
      return parseHtml(sniffed.text, url)
    case "markdown":
      return Effect.sync(() => {
        const { text, title } = parseMarkdown(sniffed.text)
        return { title, format: "markdown" as const, content: normalizeSpace(text) }
      })
    case "csv":
      return Effect.sync(() => parseCsv(sniffed.text, sniffed.isTabbed))
    case "json":
      return Effect.sync(() => parseJson(sniffed.value))
    case "text":
      return Effect.sync(() => parseText(sniffed.text))
  }
}

const maxTitleCharacters = 300

/** The last segment of the name or address without its extension, as a fallback title. */
const nameOf = ({ fileName, url }: ParseRequest): string => {
  const address = url === undefined ? null : urlOf(url)
  const path = fileName ?? address?.pathname ?? ""
  const last = path.split(/[\\/]/).findLast((segment) => segment !== "") ?? ""
  return last.replace(/\.[A-Za-z0-9]{1,10}$/, "") || last || address?.hostname || "Untitled"
}

const titleOf = (title: string | undefined, request: ParseRequest): string =>
  sanitize(oneLine(title ?? "").slice(0, maxTitleCharacters)) ||
  sanitize(nameOf(request).slice(0, maxTitleCharacters))

const noText = (kind: Sniffed["kind"]): ParseError =>
  new ParseError({
    code: "empty",
    message:
      kind === "html"
        ? "The page has no readable text. If it is built by scripts in the browser, offer its text as HTML or as a file."
        : "The document has no readable text."
  })

/** Content without NUL and lone surrogates, of 1 to `limits.maxCharacters` characters. */
export const parseDocument = (
  request: ParseRequest,
  limits: ParseLimits
): Effect.Effect<ParsedDocument, ParseError> =>
  Effect.gen(function* () {
    const sniffed = yield* sniff(request, limits)
    if ("text" in sniffed && sniffed.text.length > limits.maxCharacters * maxMarkupRatio)
      return yield* tooLong
    const { title, ...found } = yield* read(sniffed, request, limits)
    const content = sanitize(found.content).trim()
    if (content === "") return yield* noText(sniffed.kind)
    if (content.length > limits.maxCharacters) return yield* tooLong
    return { ...found, content, title: titleOf(title, request), mediaType: sniffed.mediaType }
  }).pipe(
    // Libraries may throw on damaged input, and on stack overflows.
    Effect.catchAllDefect(() =>
      Effect.fail(
        new ParseError({ code: "malformed", message: "The document is damaged and could not be read." })
      )
    )
  )
