/** Source type BULK_UPLOAD: every readable document and image of an uploaded ZIP. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import type { CrawlEntry } from "../domain/knowledge/Crawl.ts"
import type { BulkUploadConfig } from "../domain/knowledge/Source.ts"
import { sanitize } from "../domain/Text.ts"
import { loadArtifact, uploadUri } from "./File.ts"
import { documentOf } from "./Page.ts"
import { readBytes } from "./Picture.ts"
import { type Journal, noJournal } from "./Journal.ts"
import { ReaderError, permanentError } from "../capabilities/SourceReaders.ts"
import type { Reader } from "./Reader.ts"
import { pageStateOf } from "./Visits.ts"
import { unzipEntry, zipEntries, type ZipEntry, zipLimits } from "./Zip.ts"

const maxNameLength = 255

const noArchive = permanentError("no_archive", "The source has no ZIP archive. Upload one on the dashboard.")
const noDocuments = permanentError("empty", "The ZIP holds no documents.")
const noneReadable = (entries: number, { code, message, retryable }: ReaderError): ReaderError =>
  new ReaderError({
    code,
    message: `None of the ${entries} files in the ZIP could be read. The first: ${message}`,
    retryable
  })

/** Folders, hidden files and macOS metadata are not documents. */
const isDocument = ({ name }: ZipEntry): boolean => {
  const segments = name.split(/[\\/]/)
  const last = segments.at(-1) ?? ""
  return last !== "" && !segments.includes("__MACOSX") && !segments.some((segment) => /^\.[^.]/.test(segment))
}

/** A readable, unique name for each entry: control characters are dropped, repeats are numbered. */
const makeNames = () => {
  const usedNames = new Set<string>()
  /** The number with which the next repeat of the name is tried. */
  const next = new Map<string, number>()
  return (name: string): string => {
    const plain = sanitize(name)
      .replaceAll("\\", "/")
      .replace(/\p{Cc}/gu, "")
      .slice(-maxNameLength)
      .toWellFormed()
    let unique = plain
    let number = next.get(plain) ?? 2
    while (usedNames.has(unique)) unique = `${plain} (${number++})`
    next.set(plain, number)
    usedNames.add(unique)
    return unique
  }
}

/** A file of the archive that could not be read, with the reason, and the document that stays. */
const unreadEntry = (url: string, { code, message }: ReaderError, target: string | null): CrawlEntry => ({
  url,
  depth: 0,
  parent: null,
  outcome: "failed",
  reason: code,
  message,
  httpStatus: null,
  target
})

/** Records a file that could not be read. If there was no time or memory for it, its live document stays. */
const recordUnread = (journal: Journal, url: string, error: ReaderError) => {
  const known = error.retryable ? journal.known(url) : undefined
  return known === undefined
    ? journal.record(unreadEntry(url, error, null))
    : Effect.zipRight(
        journal.keepUnread(url),
        journal.record(unreadEntry(url, error, url), pageStateOf(known))
      )
}

const readEntry = Effect.fn("BulkUpload.readEntry")(function* (bytes: Uint8Array, name: string) {
  const parsed = yield* readBytes({ bytes, fileName: name })
  return documentOf(uploadUri(name), parsed, {})
})

const readArchive = (archive: Uint8Array, journal: Journal) =>
  Effect.gen(function* () {
    const entries = yield* zipEntries(archive, isDocument)
    if (entries.length === 0) return yield* noDocuments
    const nameOf = makeNames()
    let bytesLeft: number = zipLimits.totalBytes
    let failure: ReaderError | undefined
    let emitted = 0
    let settled = 0
    const read = (entry: ZipEntry, name: string) =>
      Effect.gen(function* () {
        const bytes = yield* unzipEntry(archive, entry, bytesLeft)
        bytesLeft -= bytes.length
        return yield* readEntry(bytes, name)
      })
    const settle = (entry: ZipEntry) =>
      Effect.gen(function* () {
        const name = nameOf(entry.name)
        const document = yield* Effect.either(read(entry, name))
        yield* journal.progress(++settled, entries.length)
        if (Either.isRight(document)) {
          emitted++
          return document.right
        }
        if (failure === undefined || (document.left.retryable && !failure.retryable)) failure = document.left
        yield* recordUnread(journal, uploadUri(name), document.left)
        return null
      })
    const documents = Stream.fromIterable(entries).pipe(
      Stream.mapEffect(settle),
      Stream.filter((document) => document !== null)
    )
    const failIfEmpty = Stream.suspend(() =>
      emitted === 0 && failure !== undefined
        ? Stream.fail(noneReadable(entries.length, failure))
        : Stream.empty
    )
    return Stream.concat(documents, failIfEmpty)
  })

export const reader: Reader<typeof BulkUploadConfig.Type> = {
  read: ({ artifact }, { journal = noJournal, maxDocuments }) =>
    artifact === undefined
      ? Stream.fail(noArchive)
      : Stream.unwrap(
          Effect.flatMap(loadArtifact(artifact), (archive) => readArchive(archive, journal))
        ).pipe(Stream.take(maxDocuments))
}
