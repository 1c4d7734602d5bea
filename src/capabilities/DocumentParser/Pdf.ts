/** PDF: page by page. The memory of each page is released before the next. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isError } from "../../domain/ThrownErrors.ts"
import { ParseError, type ParsedDocument, type ParseLimits } from "../DocumentParser.ts"
import { optional } from "../../domain/OptionalPackage.ts"
import { PredefinedCMaps } from "./PdfCMaps.ts"
import { layOut, type PdfLine, type PdfPage } from "./PdfLayout.ts"

/** Number of pages after which fonts and other shared data are dropped. */
const pagesPerCleanup = 20

const Item = Schema.Struct({
  str: Schema.String,
  transform: Schema.Array(Schema.Number),
  width: Schema.Number,
  height: Schema.Number,
  hasEOL: Schema.Boolean
})
type Item = typeof Item.Type
const isItem = Schema.is(Item)

/** The used members of a page of the library. */
interface PageProxy {
  readonly getTextContent: () => Promise<{ readonly items: ReadonlyArray<unknown> }>
  readonly cleanup: () => unknown
}

const Info = Schema.Struct({ info: Schema.Struct({ Title: Schema.String }) })
const isInfo = Schema.is(Info)

const malformed = new ParseError({
  code: "malformed",
  message: "The PDF is damaged or incomplete. Save it again and upload the new file."
})
const encrypted = new ParseError({
  code: "encrypted",
  message: "The PDF is encrypted. Upload a copy without a password."
})
const noTextLayer = new ParseError({
  code: "no_text_layer",
  message:
    "The PDF has no text, only images of pages. Run text recognition (OCR) on it and upload the result, or send the pages as images."
})
const tooLong = new ParseError({
  code: "too_large",
  message: "The PDF has too much text for one document. Split it into several files."
})
const tooManyPages = (pages: number, max: number) =>
  new ParseError({
    code: "too_many_pages",
    message: `The PDF has ${pages} pages, and at most ${max} are read. Split it into several files.`
  })

const library = optional("Reading PDF files", () => import("unpdf")).pipe(
  Effect.mapError(({ message }) => new ParseError({ code: "unsupported_type", message }))
)

const isPasswordException = (error: unknown): boolean => isError(error) && error.name === "PasswordException"

const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, ParseError> =>
  Effect.tryPromise({ try: work, catch: (error) => (isPasswordException(error) ? encrypted : malformed) })

/** The height of a vertical run is its length. Its font's height is that of the others. */
const withFontHeight = (item: Item): Item => {
  const [, , across = 0, up = 0] = item.transform
  return { ...item, height: Math.min(item.height, Math.hypot(across, up)) }
}

/** Joins the text runs of one line. A gap between two runs becomes a space. */
const lineOf = (items: ReadonlyArray<Item>): PdfLine => {
  const parts: Array<string> = []
  let end = Number.NEGATIVE_INFINITY
  for (const { str, transform, width, height } of items) {
    const start = transform[4] ?? 0
    if (parts.length > 0 && start - end > height * 0.25) parts.push(" ")
    parts.push(str)
    end = start + width
  }
  const text = parts.join("").replaceAll("\0", "").replace(/\s+/g, " ").trim()
  const height = items.reduce((max, item) => Math.max(max, item.str.trim() === "" ? 0 : item.height), 0)
  return { text, height, baseline: items[0]?.transform[5] ?? 0 }
}

/** A run ends its line when it says so, or when the next one has another baseline. */
const linesOf = (items: ReadonlyArray<Item>): PdfPage => {
  const lines: Array<PdfLine> = []
  let runs: Array<Item> = []
  items.forEach((item, index) => {
    runs.push(item)
    const next = items[index + 1]
    const isNewLine =
      next !== undefined &&
      Math.abs((next.transform[5] ?? 0) - (item.transform[5] ?? 0)) > Math.max(2, item.height / 2)
    if (item.hasEOL || isNewLine || next === undefined) {
      lines.push(lineOf(runs))
      runs = []
    }
  })
  return lines.filter(({ text }) => text !== "")
}

const lengthOf = (page: PdfPage): number => page.reduce((sum, { text }) => sum + text.length + 1, 0)

/** `title` is empty when neither the metadata nor a heading has one. */
export const parsePdf = (
  bytes: Uint8Array,
  { maxPages, maxCharacters }: ParseLimits
): Effect.Effect<Pick<ParsedDocument, "title" | "format" | "content">, ParseError> =>
  Effect.gen(function* () {
    const { getDocumentProxy } = yield* library
    const pdf = yield* Effect.acquireRelease(
      attempt(() =>
        getDocumentProxy(bytes, {
          verbosity: 0,
          stopAtErrors: false,
          enableXfa: false,
          cMapPacked: false,
          BinaryDataFactory: PredefinedCMaps
        })
      ),
      (proxy) => Effect.ignore(Effect.tryPromise(() => proxy.destroy()))
    )
    if (pdf.numPages > maxPages) return yield* tooManyPages(pdf.numPages, maxPages)
    const pages: Array<PdfPage> = []
    let length = 0
    for (let number = 1; number <= pdf.numPages; number++) {
      const page = yield* attempt((): Promise<PageProxy> => pdf.getPage(number))
      const { items } = yield* attempt(() => page.getTextContent())
      page.cleanup()
      const lines = linesOf(items.filter(isItem).map(withFontHeight))
      length += lengthOf(lines)
      if (length > maxCharacters) return yield* tooLong
      pages.push(lines)
      if (number % pagesPerCleanup === 0) yield* attempt(() => pdf.cleanup())
    }
    if (length === 0) return yield* noTextLayer
    const metadata: unknown = yield* Effect.orElseSucceed(
      Effect.tryPromise(() => pdf.getMetadata()),
      () => undefined
    )
    const { title, content } = layOut(pages)
    const metadataTitle = isInfo(metadata) ? metadata.info.Title.trim() : ""
    return { title: metadataTitle || title, format: "markdown" as const, content }
  }).pipe(Effect.scoped)
