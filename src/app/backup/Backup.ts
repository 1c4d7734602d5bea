/**
 * Exports the whole store to one file, and imports it into another engine or the same: all rows of one snapshot, then
 * the originals. Sealed values stay sealed, so an archive can only be used with its master secret.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import { keyIdOf } from "../../capabilities/SecretBox/DerivedKeys.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import * as Archive from "../../store/Archive.ts"
import { migrate } from "../../store/Database.ts"
import * as ArchiveFile from "./ArchiveFile.ts"
import type { Settings } from "../config/Config.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { artifactStore } from "../Capabilities.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import * as Secrets from "../config/Secrets.ts"
import { chooseVector } from "../Vector.ts"

const { ArchiveError } = ArchiveFile

/** Counts of what was exported or imported. */
export interface Totals {
  readonly rows: number
  readonly originals: number
  /** Originals that were removed during the export. */
  readonly missing: number
}

/** Maximum originals per query. */
const page = 500

const tell = (what: string, count: number) =>
  count === 0 ? Effect.void : Console.error(`${what.padEnd(24)} ${count}`)

const masters = Effect.map(Secrets.Secrets, (secrets) => secrets.masters)

const isEmbedded = ({ database: server }: Settings) => server === null

const nothingThere = (settings: Settings) =>
  new ArchiveError({
    message: isEmbedded(settings)
      ? `There is no database in ${settings.dataDir}. SPOKE_DATA_DIR sets the place.`
      : "The database has no tables of Spoke."
  })

/** Opening a missing embedded database would create it. */
const mustBeThere = (settings: Settings) =>
  isEmbedded(settings) && !fs.existsSync(path.join(settings.dataDir, "database", "PG_VERSION"))
    ? nothingThere(settings)
    : Effect.void

type Writer = Effect.Effect.Success<ReturnType<typeof ArchiveFile.create>>

const writeRows = (out: Writer) =>
  Archive.snapshot(
    Effect.gen(function* () {
      let rows = 0
      for (const { columns, table } of yield* Archive.tables) {
        yield* out.mark({ table, columns })
        const count = yield* Archive.readTable({ columns, table }, out.lines)
        yield* tell(table, count)
        rows += count
      }
      return rows
    })
  )

const writeOriginal = (out: Writer, ref: ArtifactRef) =>
  Effect.gen(function* () {
    const bytes = yield* (yield* ArtifactStore).get(ref)
    if (Option.isNone(bytes)) return false
    yield* out.mark({ original: ref, size: bytes.value.length })
    for (let at = 0; at < bytes.value.length; at += ArchiveFile.maxOriginalBytesPerLine) {
      const part = Buffer.from(bytes.value.subarray(at, at + ArchiveFile.maxOriginalBytesPerLine))
      yield* out.lines([JSON.stringify(part.toString("base64"))])
    }
    return true
  })

const decodeRefs = Schema.decodeUnknown(Schema.Array(Schema.Struct({ ref: ArtifactRef })))

const writeOriginals = (out: Writer) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    let originals = 0
    let missing = 0
    for (let after = ""; ;) {
      const found = yield* Effect.flatMap(
        sql`select ref from artifacts where ref > ${after} order by ref limit ${page}`,
        decodeRefs
      )
      for (const { ref } of found) {
        if (yield* writeOriginal(out, ref)) originals += 1
        else missing += 1
        after = ref
      }
      if (found.length < page) break
    }
    yield* tell("originals", originals)
    return { originals, missing }
  })

/** Writes everything to `file`. `withSecret` includes the master secret in plain text. */
export const exportTo = Effect.fn("Backup.exportTo")(function* (
  settings: Settings,
  file: string,
  withSecret: boolean
) {
  yield* mustBeThere(settings)
  return yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<{
      readonly there: boolean
    }>`select to_regclass('migrations') is not null as there`
    if (found?.there !== true) return yield* nothingThere(settings)
    const [current, ...previous] = yield* masters
    const out = yield* ArchiveFile.create(file)
    yield* out.mark({
      spoke: "archive",
      format: 1,
      version: Package.version,
      migrations: yield* Archive.migrationsApplied,
      keys: [current, ...previous].map(keyIdOf),
      ...(withSecret ? { secret: current } : {})
    })
    const rows = yield* writeRows(out)
    const { missing, originals } = yield* writeOriginals(out)
    yield* out.end
    const totals: Totals = { rows, originals, missing }
    return totals
  }).pipe(
    Effect.provide(Secrets.layer(settings)),
    forEveryTenant("archive"),
    Effect.provide(artifactStore(settings)),
    Effect.provide(database(settings)),
    Effect.scoped
  )
})

const wrongSecret = (settings: Settings) =>
  new ArchiveError({
    message:
      "The archive was written under another master secret, without which its channels, tools and keys cannot be read. " +
      (isEmbedded(settings)
        ? "Set SPOKE_SECRET to it, put the old secrets.json into the new data directory, or export again with --with-secret."
        : "Set SPOKE_SECRET to it; an embedded store keeps its own as `secret` in secrets.json.")
  })

type Header = typeof ArchiveFile.Header.Type

/**
 * The secrets to store in a new data directory; none when it has secrets already. Fails unless they fit the archive.
 */
const secretsFor = (settings: Settings, header: Header) =>
  Effect.gen(function* () {
    const kept = isEmbedded(settings) ? yield* DataDirectory.secrets.read(settings.dataDir) : Option.none()
    const own = Option.map(kept, ({ secret }) => secret)
    const brought =
      isEmbedded(settings) && settings.secrets.length === 0 && Option.isNone(own)
        ? Option.fromNullable(header.secret)
        : Option.none()
    const given = settings.secrets.length > 0 ? settings.secrets : Option.toArray(own)
    const ids = [...given, ...Option.toArray(brought)].map(keyIdOf)
    // Values that were not resealed since the last rotation need the earlier secrets.
    if (!header.keys.every((id) => ids.includes(id))) return yield* wrongSecret(settings)
    return Option.map(brought, (secret) => ({
      secret,
      operatorToken: Redacted.make(randomBytes(32).toString("base64url"))
    }))
  })

const sameMigrations = (header: Header) =>
  Effect.gen(function* () {
    const here = yield* Archive.migrationsApplied
    if (here.join() === header.migrations.join()) return
    return yield* new ArchiveError({
      message:
        `The archive was written by Spoke ${header.version} with ${header.migrations.length} migrations, this version has ` +
        `${here.length}. Import it with that version, then upgrade.`
    })
  })

const mustBeEmpty = Effect.gen(function* () {
  const filled = yield* Archive.nonEmptyTables
  if (filled.length === 0) return
  return yield* new ArchiveError({
    message: `The database is not empty (${filled.slice(0, 3).join(", ")}): import into a new one. Nothing was changed.`
  })
})

/** The marks, each with the lines before the next one, a few lines at a time. */
const eachPart = <E, R, E2, R2>(
  file: string,
  begin: (mark: typeof ArchiveFile.Mark.Type) => Effect.Effect<void, E, R>,
  lines: (several: ReadonlyArray<string>) => Effect.Effect<void, E2, R2>
) =>
  Stream.runForEach(ArchiveFile.read(file), (several) =>
    Effect.gen(function* () {
      let from = 0
      for (const [index, line] of several.entries()) {
        if (!line.startsWith("{")) continue
        if (index > from) yield* lines(several.slice(from, index))
        yield* begin(yield* ArchiveFile.markOf(file, line))
        from = index + 1
      }
      if (several.length > from) yield* lines(several.slice(from))
    })
  )

const decodePiece = Schema.decode(Schema.parseJson(Schema.String))

const readOriginals = (file: string) =>
  Effect.gen(function* () {
    const artifacts = yield* ArtifactStore
    let current: { readonly ref: string; readonly pieces: Array<Buffer> } | null = null
    let originals = 0
    const finish = Effect.suspend(() => {
      if (current === null) return Effect.void
      const { pieces, ref } = current
      current = null
      originals += 1
      return Effect.flatMap(artifacts.put(Buffer.concat(pieces)), (stored) =>
        stored === ref
          ? Effect.void
          : new ArchiveError({ message: `The original ${ref} is damaged in the archive.` })
      )
    })
    yield* eachPart(
      file,
      (mark) =>
        Effect.map(finish, () => {
          if ("original" in mark) current = { ref: mark.original, pieces: [] }
        }),
      (several) => {
        const pieces = current?.pieces
        return pieces === undefined
          ? Effect.void
          : Effect.forEach(
              several,
              (line) =>
                Effect.map(Effect.orDie(decodePiece(line)), (text) =>
                  pieces.push(Buffer.from(text, "base64"))
                ),
              { discard: true }
            )
      }
    )
    yield* tell("originals", originals)
    return originals
  })

/** Rows of one statement; few, because a row may be long. */
const rowsAtOnce = 200

const readRows = (file: string) =>
  Effect.gen(function* () {
    const known = yield* Archive.shape
    let rows = 0
    let count = 0
    let table = ""
    let write: Effect.Effect.Success<ReturnType<typeof Archive.writerOf>> | null = null
    yield* eachPart(
      file,
      (mark) =>
        Effect.gen(function* () {
          if (write !== null) yield* tell(table, count)
          write = null
          if (!("table" in mark)) return
          yield* Archive.requireMatchingTable(known, mark)
          count = 0
          table = mark.table
          write = yield* Archive.writerOf(known, mark)
        }),
      (several) =>
        Effect.gen(function* () {
          for (let at = 0; write !== null && at < several.length; at += rowsAtOnce) {
            const some = several.slice(at, at + rowsAtOnce)
            yield* write(some)
            rows += some.length
            count += some.length
          }
        })
    )
    return rows
  })

/** Imports `file` into an empty database: all rows in one transaction, or none. */
export const importFrom = Effect.fn("Backup.importFrom")(function* (settings: Settings, file: string) {
  const header = yield* ArchiveFile.verify(file)
  return yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const fresh = yield* secretsFor(settings, header)
    yield* migrate(Package.migrations)
    yield* chooseVector(settings)
    yield* sameMigrations(header)
    yield* mustBeEmpty
    if (Option.isSome(fresh)) yield* DataDirectory.secrets.write(settings.dataDir, fresh.value)
    const originals = yield* readOriginals(file)
    const rows = yield* sql.withTransaction(
      Effect.gen(function* () {
        // A server started meanwhile either writes first, and the import fails, or waits for this lock.
        yield* sql`lock table tenants in share row exclusive mode`
        yield* mustBeEmpty
        const read = yield* readRows(file)
        yield* Archive.resetSequences
        return read
      })
    )
    yield* sql`analyze`
    const totals: Totals = { rows, originals, missing: 0 }
    return totals
  }).pipe(
    forEveryTenant("archive"),
    Effect.provide(artifactStore(settings)),
    Effect.provide(database(settings)),
    Effect.scoped
  )
})
