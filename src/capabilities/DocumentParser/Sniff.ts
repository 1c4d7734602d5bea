/** Detects the type of a document from its bytes. Name and declared type only distinguish kinds of text. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { fileTypeFromBuffer } from "file-type"
import { sanitize } from "../../domain/Text.ts"
import { ParseError, type ParseLimits, type ParseRequest } from "../DocumentParser.ts"
import { certainEncoding, decodeText } from "./Charset.ts"
import { type ContainerKind, containerKind } from "./Container.ts"

export type Sniffed =
  | { readonly kind: "pdf" | ContainerKind; readonly mediaType: string }
  | { readonly kind: "html" | "markdown" | "text"; readonly mediaType: string; readonly text: string }
  /** `isTabbed`: its name or declared type says that tabs separate the values, and it has tabs. */
  | { readonly kind: "csv"; readonly mediaType: string; readonly text: string; readonly isTabbed: boolean }
  | { readonly kind: "json"; readonly mediaType: string; readonly value: unknown }

const office = "application/vnd.openxmlformats-officedocument"
const containerTypes: Readonly<Record<ContainerKind, string>> = {
  docx: `${office}.wordprocessingml.document`,
  xlsx: `${office}.spreadsheetml.sheet`,
  pptx: `${office}.presentationml.presentation`,
  epub: "application/epub+zip"
}
const supportedTypes = "Send a PDF, DOCX, XLSX, PPTX, EPUB, HTML, Markdown, text, CSV or JSON document."
const archiveType = /zip|x-7z|x-rar|x-tar|gzip|x-bzip2|x-xz|zstd|x-lzh|x-cpio|x-unix-archive/

/** Images whose text is recognized. They get here as pages of a site. */
const recognizedType = /^image\/(?:a?png|jpeg|gif|webp|bmp|tiff)$/

const unsupported = (mediaType: string): ParseError => {
  const error = (message: string) => new ParseError({ code: "unsupported_type", message })
  if (mediaType.startsWith("image/") && !recognizedType.test(mediaType)) {
    return error(`Images of type ${mediaType} are not read. Save it as PNG, JPEG, WebP or GIF.`)
  }
  const what = mediaType.startsWith("image/")
    ? "The file is an image. Add it as a source of type IMAGE, which reads the text in it."
    : archiveType.test(mediaType)
      ? "The file is an archive. Unpack it, or upload a ZIP of documents as a bulk upload."
      : mediaType === "application/octet-stream"
        ? "The file is not a document of a known type."
        : `Documents of type ${mediaType} are not read.`
  return error(`${what} ${supportedTypes}`)
}

const encrypted = new ParseError({
  code: "encrypted",
  message: "The Office document is encrypted. Upload a copy without a password."
})
/** Office stores a password-protected document in a stream of this name. */
const isProtectedOffice = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes("EncryptedPackage", 0, "utf16le")

const isControl = (byte: number): boolean =>
  byte < 9 || (byte > 13 && byte < 27) || (byte > 27 && byte < 32) || byte === 127

/** True when more than one byte in twenty is a control character. A single NUL does not make a page binary. */
const looksBinary = (bytes: Uint8Array): boolean => {
  if (certainEncoding(bytes) !== undefined) return false
  const length = Math.min(bytes.length, 8_192)
  let controls = 0
  for (let at = 0; at < length; at++) if (isControl(bytes[at] ?? 0)) controls++
  return controls * 20 > length
}

/** Signatures made of letters, such as "BM" or "MZ", also begin ordinary text and are not used. */
const hasBinarySignature = (bytes: Uint8Array): boolean =>
  certainEncoding(bytes) === undefined && bytes.subarray(0, 8).some((byte) => isControl(byte) || byte > 127)

/** Markup is text: no unsupported format begins with `<` and letters. */
const beginsWithMarkup = (bytes: Uint8Array, binary: boolean): boolean =>
  !binary && bytes[0] === 0x3c && !hasBinarySignature(bytes)

/** The header may be preceded by white space, or be anywhere in the first KiB of binary data. */
const isPdf = (bytes: Uint8Array, binary: boolean): boolean => {
  const start = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024))
  return start.trimStart().startsWith("%PDF-") || (binary && start.includes("%PDF-"))
}

const mediaTypeOf = (contentType: string | undefined): string =>
  (contentType ?? "").split(";", 1).join("").trim().toLowerCase()

const extensionOf = (name: string | undefined): string =>
  /\.([a-z0-9]{1,10})$/i.exec(name ?? "")?.[1]?.toLowerCase() ?? ""

const pageStart = /^(?:<!doctype html|<html[\s>]|<head[\s>]|<body[\s>])/i
const drawingStart = /^(?:<!doctype svg|<svg)[\s>]/i
const blockTag = /<(?:p|div|h[1-6]|table|ul|ol|section|article|main|span|a|br)[\s/>]/i

/** The text without byte order mark, XML declaration and comments before the root. */
const withoutProlog = (text: string): string => {
  let rest = text.slice(0, 16_384).trimStart()
  for (;;) {
    const close = rest.startsWith("<?") ? "?>" : rest.startsWith("<!--") ? "-->" : undefined
    if (close === undefined) return rest
    const end = rest.indexOf(close)
    if (end === -1) return rest
    rest = rest.slice(end + close.length).trimStart()
  }
}

const headingLine = /^#{1,6} \S/
const otherStructure = /^(?:```|~~~|[-*] \S|\d{1,9}\. \S|\|.*\||> )|\]\(|\*\*\S/

/** Structure that plain text rarely has by chance: three headings, or one and a list, a fence, a link or a table. */
const isMarkdown = (text: string): boolean => {
  let headingLines = 0
  let structuredLines = 0
  for (const line of text.slice(0, 32_768).split("\n")) {
    if (headingLine.test(line)) headingLines++
    else if (otherStructure.test(line.slice(0, 400))) structuredLines++
  }
  return headingLines > 2 || (headingLines > 0 && structuredLines > 0)
}

const endOfString = (json: string, start: number): number => {
  let at = start + 1
  while (at < json.length && json.charAt(at) !== '"') at += json.charAt(at) === "\\" ? 2 : 1
  return at + 1
}

/** Quotes the numbers of valid JSON that JavaScript cannot write back, as `1.10` and identifiers of 19 digits. */
const quoteInexactNumbers = (json: string): string => {
  const parts: Array<string> = []
  const tokens = /"|-?\d[\d.eE+-]*/g
  let from = 0
  for (let found = tokens.exec(json); found !== null; found = tokens.exec(json)) {
    const [token] = found
    if (token === '"') tokens.lastIndex = endOfString(json, found.index)
    else if (token.length > 25 || String(Number(token)) !== token) {
      parts.push(json.slice(from, found.index), `"${token}"`)
      from = tokens.lastIndex
    }
  }
  return parts.length === 0 ? json : parts.join("") + json.slice(from)
}

const parseJson = Option.liftThrowable((text: string): unknown => {
  const value: unknown = JSON.parse(text)
  const exact = quoteInexactNumbers(text)
  return exact === text ? value : JSON.parse(exact)
})

const isDeclaredMarkdown = (extension: string, declared: string): boolean =>
  ["md", "mdx", "markdown"].includes(extension) || declared === "text/markdown"

const isHtml = (text: string, extension: string, declared: string): boolean => {
  const root = withoutProlog(text)
  if (pageStart.test(root)) return true
  if (isDeclaredMarkdown(extension, declared)) return false
  const isDeclared =
    ["html", "htm", "xhtml"].includes(extension) || /^(?:text\/html|application\/xhtml)/.test(declared)
  return (isDeclared || (root.startsWith("<") && !drawingStart.test(root))) && blockTag.test(root)
}

/** Markup of an SVG drawing, which has no text to quote. */
const isDrawing = (sniffed: Sniffed): boolean =>
  sniffed.kind === "text" && drawingStart.test(withoutProlog(sniffed.text))

const sniffText = ({ bytes, fileName, contentType }: ParseRequest): Sniffed => {
  const declared = mediaTypeOf(contentType)
  const extension = extensionOf(fileName)
  const text = sanitize(decodeText(bytes, contentType, true)).replace(/^\uFEFF/, "")
  if (isHtml(text, extension, declared)) return { kind: "html", mediaType: "text/html", text }
  const start = text.trimStart().charAt(0)
  if (extension === "json" || declared === "application/json" || start === "{" || start === "[") {
    const value = parseJson(text)
    if (Option.isSome(value)) return { kind: "json", mediaType: "application/json", value: value.value }
  }
  const isTable =
    extension === "csv" || extension === "tsv" || /^text\/(?:csv|tab-separated-values)$/.test(declared)
  if (isTable) {
    const isTabbed = extension === "tsv" || declared === "text/tab-separated-values"
    return { kind: "csv", mediaType: "text/csv", text, isTabbed: isTabbed && text.includes("\t") }
  }
  return isDeclaredMarkdown(extension, declared) || isMarkdown(text)
    ? { kind: "markdown", mediaType: "text/markdown", text }
    : { kind: "text", mediaType: "text/plain", text }
}

/** Maximum length of a document as a multiple of `maxCharacters`, because markup does not count as text. */
export const maxMarkupRatio = 3

export const tooLong = new ParseError({
  code: "too_large",
  message: "The document has too much text. Split it into several files."
})

/**
 * The kind of the document, with its text if the bytes are text. Fails with `unsupported_type`, `empty` or, before text
 * that is too long is decoded, `too_large`.
 */
export const sniff = (
  request: ParseRequest,
  { maxCharacters }: ParseLimits
): Effect.Effect<Sniffed, ParseError> =>
  Effect.gen(function* () {
    const { bytes } = request
    if (bytes.length === 0) return yield* new ParseError({ code: "empty", message: "The document is empty." })
    const binary = looksBinary(bytes)
    if (isPdf(bytes, binary)) return { kind: "pdf", mediaType: "application/pdf" } as const
    const container = containerKind(bytes)
    if (container !== undefined) return { kind: container, mediaType: containerTypes[container] } as const
    const found = beginsWithMarkup(bytes, binary)
      ? undefined
      : yield* Effect.orElseSucceed(
          Effect.tryPromise(() => fileTypeFromBuffer(bytes)),
          () => undefined
        )
    if (found?.mime === "application/x-cfb" && isProtectedOffice(bytes)) return yield* encrypted
    if (binary || (found !== undefined && (found.ext === "rtf" || hasBinarySignature(bytes)))) {
      return yield* unsupported(found?.mime ?? "application/octet-stream")
    }
    if (bytes.length > maxCharacters * maxMarkupRatio) return yield* tooLong
    const sniffed = sniffText(request)
    return isDrawing(sniffed) ? yield* unsupported("image/svg+xml") : sniffed
  })
