/** PDF: page by page. The memory of each page is released before the next. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isError } from "../../domain/ThrownErrors.ts"
import { ParseError, type ParsedDocument, type ParseLimits } from "../DocumentParser.ts"
import { optional } from "../../domain/OptionalPackage.ts"
import { PredefinedCMaps } from "./PdfCMaps.ts"
import { layOut, type PdfPage } from "./PdfLayout.ts"
import { linesOf } from "./PdfLines.ts"
import { noteTypes, notesOf } from "./PdfNotes.ts"

/** Number of pages after which fonts and other shared data are dropped. */
const pagesPerCleanup = 20

/** The used members of a page of the library. */
interface PageProxy {
  readonly getTextContent: () => Promise<{ readonly items: ReadonlyArray<unknown> }>
  readonly getAnnotations: () => Promise<ReadonlyArray<object>>
  readonly cleanup: () => unknown
}

/** The used members of a file of the library, to read its pages. */
interface DocumentProxy {
  readonly numPages: number
  readonly getPage: (number: number) => Promise<PageProxy>
  /** Null if the file's description of its forms is damaged. */
  readonly getAnnotationsByType: (
    types: Set<number>,
    skippedIndexes: Set<number>
  ) => Promise<ReadonlyArray<object> | null>
  readonly cleanup: () => Promise<unknown>
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

/** Maximum number of ranges of pages that a message names. */
const maxNamedRanges = 20

/** Names the pages: `2-5, 9`. With `andLater`, those behind the last one are missing too: `2-5, 9 ff.` */
const pagesUnread = (numbers: ReadonlyArray<number>, andLater: boolean): string => {
  const ranges: Array<{ readonly from: number; to: number }> = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last?.to === number - 1) last.to = number
    else ranges.push({ from: number, to: number })
  }
  const names = ranges
    .slice(0, maxNamedRanges)
    .map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`))
  const rest = ranges.length > maxNamedRanges ? " and more." : andLater ? " ff." : "."
  return `The file is damaged. Pages that could not be read completely: ${names.join(", ")}${rest}`
}

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

const lengthOf = (page: PdfPage): number => page.reduce((sum, { text }) => sum + text.length + 1, 0)

/** What the pages of a file have. Numbers of pages begin with 1. */
interface ReadPages {
  readonly pages: ReadonlyArray<PdfPage>
  /** Pages that could not be found. */
  readonly lost: ReadonlySet<number>
  /** Pages whose content could not be read, and the lost ones. */
  readonly damaged: ReadonlySet<number>
}

const readPages = (pdf: DocumentProxy, maxCharacters: number): Effect.Effect<ReadPages, ParseError> =>
  Effect.gen(function* () {
    const pages: Array<PdfPage> = []
    const lost = new Set<number>()
    const damaged = new Set<number>()
    let length = 0
    for (let number = 1; number <= pdf.numPages; number++) {
      const page = yield* Effect.option(attempt(() => pdf.getPage(number)))
      const text = yield* Effect.option(
        Effect.flatMap(page, (found) =>
          Effect.ensuring(
            attempt(() => found.getTextContent()),
            Effect.sync(() => found.cleanup())
          )
        )
      )
      if (Option.isNone(page)) lost.add(number)
      if (Option.isNone(text)) damaged.add(number)
      const items: ReadonlyArray<unknown> = Option.isSome(text) ? text.value.items : []
      const lines = linesOf(items)
      length += lengthOf(lines)
      if (length > maxCharacters) return yield* tooLong
      pages.push(lines)
      if (number % pagesPerCleanup === 0) yield* attempt(() => pdf.cleanup())
    }
    return { pages, lost, damaged }
  })

/**
 * The annotations of all pages but the lost ones. The library reads them by type for all pages together, which takes less
 * time than by page if there are many links. If that fails because of one page, each page is read, and the `damaged` ones
 * are named.
 */
const readAnnotations = (pdf: DocumentProxy, lost: ReadonlySet<number>) => {
  const damaged: Array<number> = []
  const ofPage = (number: number) =>
    attempt(() => pdf.getPage(number)).pipe(
      Effect.flatMap((page) => attempt(() => page.getAnnotations())),
      Effect.map((annotations) => annotations.map((one) => ({ ...one, pageIndex: number - 1 }))),
      Effect.orElseSucceed(() => {
        damaged.push(number)
        return []
      })
    )
  const skipped = new Set([...lost].map((number) => number - 1))
  const byPage = Effect.suspend(() =>
    Effect.forEach(
      Array.from({ length: pdf.numPages }, (_, index) => index + 1).filter((number) => !lost.has(number)),
      ofPage
    )
  )
  return attempt(() => pdf.getAnnotationsByType(new Set(noteTypes), skipped)).pipe(
    Effect.orElse(() => Effect.map(byPage, (pages) => pages.flat())),
    Effect.map((annotations) => ({ notes: notesOf(annotations ?? []), damaged }))
  )
}

/** `title` is empty when neither the metadata nor a heading has one. */
export const parsePdf = (
  bytes: Uint8Array,
  { maxPages, maxCharacters }: ParseLimits
): Effect.Effect<Pick<ParsedDocument, "title" | "format" | "content" | "incomplete">, ParseError> =>
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
    const read = yield* readPages(pdf, maxCharacters)
    const { notes, damaged } = yield* readAnnotations(pdf, read.lost)
    const incompletePages = [...new Set([...read.damaged, ...damaged])].toSorted((a, b) => a - b)
    // Comments on scanned pages are not their text.
    if (!notes.hasFields && read.pages.every(({ length }) => length === 0))
      return yield* incompletePages.length > 0 ? malformed : noTextLayer
    const metadata: unknown = yield* Effect.orElseSucceed(
      Effect.tryPromise(() => pdf.getMetadata()),
      () => undefined
    )
    const { title, content } = layOut(read.pages, notes.texts)
    const metadataTitle = isInfo(metadata) ? metadata.info.Title.trim() : ""
    const incomplete =
      incompletePages.length === 0
        ? {}
        : { incomplete: pagesUnread(incompletePages, read.lost.has(pdf.numPages)) }
    return { title: metadataTitle || title, format: "markdown" as const, content, ...incomplete }
  }).pipe(Effect.scoped)
