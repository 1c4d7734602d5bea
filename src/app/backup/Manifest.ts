/**
 * The content of an archive. An archive is a folder:
 *
 * - `manifest.json`: what the archive holds, with the size and SHA-256 of each file. It exists once the archive is whole.
 * - `rows/<table>-<number>.jsonl.gz`: a *part*, rows of one table between two keys, one JSON array a line.
 * - `originals/<first two digits>/<SHA-256>`: the bytes of an original.
 * - `unfinished.jsonl`: while it is being written, the header and a line for each finished part.
 */
import { createHash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { TenantId } from "../../domain/Ids.ts"
import { RowKey, TableShape } from "../../domain/accounts/TenantMove.ts"
import { sync } from "../../store/database/Folder.ts"
import * as Originals from "./Originals.ts"
import { ArchiveError, attempt, damaged, verify, type Written } from "./PartFile.ts"

const Header = Schema.Struct({
  spoke: Schema.Literal("archive"),
  format: Schema.Literal(2),
  /** Random id of the archive. */
  id: Schema.String,
  /** Version of the program that wrote it. */
  version: Schema.String,
  migrations: Schema.Array(Schema.String),
  /** Ids of the master secrets that its sealed values need. The secrets cannot be derived from their ids. */
  keys: Schema.Array(Schema.String),
  /** The master secret itself, if it was requested. */
  secret: Schema.optionalWith(Schema.Redacted(Schema.String), { exact: true }),
  /** The only tenant of the archive. `hasSealKey`: its secrets are sealed under a key of the operator. */
  tenant: Schema.optionalWith(
    Schema.Struct({ id: TenantId, name: Schema.String, hasSealKey: Schema.Boolean }),
    { exact: true }
  )
})
export type Header = typeof Header.Type

const File = { file: Schema.String, bytes: Schema.Int, sha256: Schema.String }

/** Rows of `table` behind `after` up to `upTo`; null for no bound. `hash` is of the rows, not of the file. */
const Part = Schema.Struct({
  table: Schema.String,
  after: Schema.NullOr(RowKey),
  upTo: Schema.NullOr(RowKey),
  rows: Schema.Int,
  hash: Schema.String,
  ...File
})
export type Part = typeof Part.Type

const Manifest = Schema.Struct({
  ...Header.fields,
  /** In an order in which each table comes after those it refers to. */
  tables: Schema.Array(TableShape),
  parts: Schema.Array(Part),
  /** A file with one reference a line. */
  originals: Schema.Struct({ count: Schema.Int, ...File }),
  /** For one tenant: its jobs, and the processed events of its channels, one a line. */
  jobs: Schema.optionalWith(Schema.Struct(File), { exact: true }),
  events: Schema.optionalWith(Schema.Struct(File), { exact: true })
})
export type Manifest = typeof Manifest.Type

const encodeManifest = Schema.encodeSync(Schema.parseJson(Manifest))
const Sealed = Schema.parseJson(Schema.Struct({ manifest: Schema.String, sha256: Schema.String }))
const decodeManifest = Schema.decode(Schema.parseJson(Manifest))
const headerLine = Schema.parseJson(Header)
const partLine = Schema.parseJson(Part)

export const jobsName = "jobs.jsonl.gz"
export const eventsName = "events.jsonl.gz"
const manifestName = "manifest.json"
const journalName = "unfinished.jsonl"

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

const exists = (file: string) => fs.existsSync(file)

/** True for a folder; conversations to import are in a file. */
export const isArchive = (place: string): boolean =>
  fs.statSync(place, { throwIfNoEntry: false })?.isDirectory() === true

/** Parts that an interrupted export has finished, by table and the beginning of their range. */
export type Finished = ReadonlyMap<string, Part>

export const partKey = ({ after, table }: Pick<Part, "table" | "after">): string =>
  JSON.stringify([table, after])

/** A header before the archive has its id. */
export type NewHeader = Omit<Header, "id">

const isSameExport = (one: NewHeader, other: NewHeader) =>
  JSON.stringify([one.migrations, one.keys, one.secret !== undefined, one.tenant?.id]) ===
  JSON.stringify([other.migrations, other.keys, other.secret !== undefined, other.tenant?.id])

const readJournal = (folder: string, given: NewHeader) =>
  Effect.gen(function* () {
    const file = path.join(folder, journalName)
    const [first = "", ...lines] = (yield* attempt(`${file} cannot be read`, () =>
      fs.promises.readFile(file, "utf8")
    )).split("\n")
    const begun = yield* Effect.mapError(Schema.decode(headerLine)(first), () => damaged(file))
    if (!isSameExport(begun, given)) {
      return yield* new ArchiveError({
        message: `${folder} has an export that was begun with other options, secrets or migrations. Choose another folder.`
      })
    }
    // If a line was cut off, its part is written again.
    const parts = lines.flatMap((line) =>
      Either.match(Schema.decodeEither(partLine)(line), {
        onLeft: () => [],
        onRight: (part) => (exists(path.join(folder, part.file)) ? [part] : [])
      })
    )
    return { header: begun, finished: new Map(parts.map((part) => [partKey(part), part])) }
  })

/**
 * Begins an archive, or continues one that was interrupted. An archive that is whole is never changed, and a folder with
 * anything else in it is refused.
 */
export const begin = (folder: string, given: NewHeader) =>
  Effect.gen(function* () {
    const what = `${folder} cannot be written`
    const journal = path.join(folder, journalName)
    if (exists(path.join(folder, manifestName))) {
      return yield* new ArchiveError({ message: `${folder} already exists. Choose another name.` })
    }
    // A journal that was cut off before its first line counts as new.
    const isNew = (fs.statSync(journal, { throwIfNoEntry: false })?.size ?? 0) === 0
    if (isNew && !exists(journal) && exists(folder)) {
      const names = yield* attempt(what, () => fs.promises.readdir(folder))
      if (names.length > 0)
        return yield* new ArchiveError({
          message: `${folder} already exists, and is no archive. Choose another name.`
        })
    }
    yield* attempt(what, () => fs.promises.mkdir(folder, { recursive: true, mode: 0o700 }))
    const newHeader = { ...given, id: randomBytes(16).toString("hex") }
    const { finished, header }: { readonly finished: Finished; readonly header: Header } = isNew
      ? { finished: new Map(), header: newHeader }
      : yield* readJournal(folder, given)
    const handle = yield* Effect.acquireRelease(
      attempt(what, () => fs.promises.open(journal, "a", 0o600)),
      (opened) => Effect.promise(() => opened.close().catch(() => undefined))
    )
    const append = (line: string) =>
      attempt(what, async () => {
        await handle.appendFile(line)
        await handle.datasync()
      })
    // Ends a line that was cut off.
    yield* append(isNew ? `${Schema.encodeSync(headerLine)(header)}\n` : "\n")
    return {
      header,
      finished,
      add: (part: Part) => append(`${Schema.encodeSync(partLine)(part)}\n`),
      /** Completes the archive. */
      end: (manifest: Manifest) =>
        attempt(what, async () => {
          const text = encodeManifest(manifest)
          const partial = path.join(folder, `${manifestName}.${process.pid}.partial`)
          await fs.promises.writeFile(partial, JSON.stringify({ manifest: text, sha256: sha256(text) }), {
            mode: 0o600,
            flush: true
          })
          await fs.promises.rename(partial, path.join(folder, manifestName))
          await sync(folder)
          await fs.promises.rm(journal)
        })
    } as const
  })

/** The manifest of a whole archive. Other files are not checked. */
export const read = (folder: string) =>
  Effect.gen(function* () {
    const file = path.join(folder, manifestName)
    if (!exists(file)) {
      return yield* new ArchiveError({
        message: exists(path.join(folder, journalName))
          ? `The export to ${folder} was interrupted: it is not a whole archive. Export to it again to finish it.`
          : `${folder} is not a whole archive of Spoke.`
      })
    }
    const text = yield* attempt(`${file} cannot be read`, () => fs.promises.readFile(file, "utf8"))
    const sealed = yield* Effect.mapError(Schema.decode(Sealed)(text), () => damaged(folder))
    if (sha256(sealed.manifest) !== sealed.sha256) return yield* damaged(folder)
    return yield* Effect.mapError(decodeManifest(sealed.manifest), () => damaged(folder))
  })

/** {@link read}. Fails unless every file of it is whole, originals included. */
export const readWhole = (folder: string) =>
  Effect.tap(read(folder), ({ events, jobs, originals, parts }) =>
    Effect.forEach(
      [...parts, originals, ...[events, jobs].filter((file) => file !== undefined)],
      (one: Written & { readonly file: string }) => verify(path.join(folder, one.file), one)
    ).pipe(Effect.zipRight(Originals.verifyAll(folder)))
  )
