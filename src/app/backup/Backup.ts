/**
 * Exports the whole store to a folder, and imports it into another engine or the same: all rows of one snapshot, then
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
import * as Stream from "effect/Stream"
import { keyIdOf } from "../../capabilities/SecretBox/DerivedKeys.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import * as Rows from "../../store/archive/Rows.ts"
import { onSnapshot, patient } from "../../store/archive/Snapshot.ts"
import * as Tables from "../../store/archive/Tables.ts"
import { migrate } from "../../store/Database.ts"
import type { Settings } from "../config/Config.ts"
import * as Secrets from "../config/Secrets.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { artifactStore } from "../Capabilities.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import { chooseVector } from "../Vector.ts"
import * as Manifest from "./Manifest.ts"
import * as Originals from "./Originals.ts"
import * as PartFile from "./PartFile.ts"
import * as Parts from "./Parts.ts"

const { ArchiveError } = PartFile

/** Counts of what was exported or imported. */
export interface Totals {
  readonly rows: number
  readonly originals: number
  /** Originals that were removed during the export. */
  readonly missing: number
}

export interface ExportOptions {
  /** Includes the master secret in plain text. */
  readonly withSecret: boolean
  /** Connections that read rows at the same time. The embedded database has one. */
  readonly streams: number
}

const tell = (what: string, count: number) =>
  count === 0 ? Effect.void : Console.error(`${what.padEnd(24)} ${count}`)

const masters = Effect.map(Secrets.Secrets, (secrets) => secrets.masters)

const isEmbedded = ({ database: server }: Settings) => server === null

/** With a connection for each stream, and one that holds the snapshot. */
const wide = (settings: Settings, streams: number): Settings =>
  settings.database === null
    ? settings
    : {
        ...settings,
        database: {
          ...settings.database,
          maxConnections: Math.max(settings.database.maxConnections, streams + 1)
        }
      }

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

const countsOf = (parts: Iterable<Manifest.Part>) => {
  const counts = new Map<string, number>()
  for (const { rows, table } of parts) counts.set(table, (counts.get(table) ?? 0) + rows)
  return counts
}

/** Writes everything to `folder`. Continues an export that was interrupted. */
export const exportTo = Effect.fn("Backup.exportTo")(function* (
  settings: Settings,
  folder: string,
  { streams: asked, withSecret }: ExportOptions
) {
  yield* mustBeThere(settings)
  const streams = isEmbedded(settings) ? 1 : asked
  return yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<{
      readonly there: boolean
    }>`select to_regclass('migrations') is not null as there`
    if (found?.there !== true) return yield* nothingThere(settings)
    const [current, ...previous] = yield* masters
    const header: Manifest.Header = {
      spoke: "archive",
      format: 2,
      version: Package.version,
      migrations: yield* Tables.migrationsApplied,
      keys: [current, ...previous].map(keyIdOf),
      ...(withSecret ? { secret: current } : {})
    }
    const { add, end, finished } = yield* Manifest.begin(folder, header)
    const tables = yield* Tables.tables
    const { parts, stream } = yield* Parts.make({
      folder,
      tables,
      tenantId: null,
      finished,
      add,
      rewrite: null,
      rowsPerPart: Parts.rowsPerPart
    })
    yield* onSnapshot(streams, stream)
    const counts = countsOf(parts.values())
    for (const { table } of tables) yield* tell(table, counts.get(table) ?? 0)
    const { list, missing } = yield* Originals.saveAll(folder, null)
    yield* tell("originals", list.count)
    yield* end({
      ...header,
      tables: tables.map(({ columns, table, types }) => ({ table, columns, types })),
      parts: [...parts.values()],
      originals: list
    })
    const totals: Totals = {
      rows: [...counts.values()].reduce((total, rows) => total + rows, 0),
      originals: list.count,
      missing
    }
    return totals
  }).pipe(
    Effect.provide(Secrets.layer(settings)),
    forEveryTenant("archive"),
    Effect.provide(artifactStore(settings)),
    Effect.provide(database(wide(settings, streams))),
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

/**
 * The secrets to store in a new data directory; none when it has secrets already. Fails unless they fit the archive.
 */
const secretsFor = (settings: Settings, { keys, secret: included }: Manifest.Header) =>
  Effect.gen(function* () {
    const kept = isEmbedded(settings) ? yield* DataDirectory.secrets.read(settings.dataDir) : Option.none()
    const own = Option.map(kept, ({ secret }) => secret)
    const brought =
      isEmbedded(settings) && settings.secrets.length === 0 && Option.isNone(own)
        ? Option.fromNullable(included)
        : Option.none()
    const given = settings.secrets.length > 0 ? settings.secrets : Option.toArray(own)
    const ids = [...given, ...Option.toArray(brought)].map(keyIdOf)
    // Values that were not resealed since the last rotation need the earlier secrets.
    if (!keys.every((id) => ids.includes(id))) return yield* wrongSecret(settings)
    return Option.map(brought, (secret) => ({
      secret,
      operatorToken: Redacted.make(randomBytes(32).toString("base64url"))
    }))
  })

const sameMigrations = ({ migrations, version }: Manifest.Header) =>
  Effect.gen(function* () {
    const here = yield* Tables.migrationsApplied
    if (here.join() === migrations.join()) return
    return yield* new ArchiveError({
      message:
        `The archive was written by Spoke ${version} with ${migrations.length} migrations, this version has ` +
        `${here.length}. Import it with that version, then upgrade.`
    })
  })

const mustBeEmpty = Effect.gen(function* () {
  const filled = yield* Tables.nonEmptyTables
  if (filled.length === 0) return
  return yield* new ArchiveError({
    message: `The database is not empty (${filled.slice(0, 3).join(", ")}): import into a new one. Nothing was changed.`
  })
})

/** Rows of one statement; few, because a row may be long. */
const rowsAtOnce = 200

const readPart = (folder: string, table: Tables.Table, { file }: Manifest.Part) =>
  Stream.runForEach(
    PartFile.read(path.join(folder, file)).pipe(Stream.flattenIterables, Stream.grouped(rowsAtOnce)),
    (rows) => Rows.write(table, Array.from(rows))
  )

/** Fails unless the table has the rows of its parts. */
const sameRows = (table: Tables.Table, parts: ReadonlyArray<Manifest.Part>) =>
  Effect.gen(function* () {
    const expected = Rows.sumOf(parts)
    const stored = yield* Rows.digestOfRange(table, { tenantId: null, after: null, upTo: null })
    if (stored.rows === expected.rows && stored.hash === expected.hash) return stored.rows
    return yield* new ArchiveError({
      message: `The rows of ${table.table} differ from those of the archive (${stored.rows} instead of ${expected.rows}). Nothing was changed.`
    })
  })

const readRows = (folder: string, { parts, tables }: Manifest.Manifest) =>
  Effect.gen(function* () {
    const known = yield* Tables.tables
    const matched = yield* Effect.forEach(tables, (shape) => Tables.matching(known, shape))
    let rows = 0
    for (const table of matched) {
      const own = parts.filter((part) => part.table === table.table)
      yield* Effect.forEach(own, (part) => readPart(folder, table, part), { discard: true })
      const count = yield* sameRows(table, own)
      yield* tell(table.table, count)
      rows += count
    }
    yield* Rows.raiseSequences(known)
    return rows
  })

/** Imports `folder` into an empty database: all rows in one transaction, or none. */
export const importFrom = Effect.fn("Backup.importFrom")(function* (settings: Settings, folder: string) {
  const manifest = yield* Manifest.verified(folder)
  return yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const fresh = yield* secretsFor(settings, manifest)
    yield* migrate(Package.migrations)
    yield* chooseVector(settings)
    yield* sameMigrations(manifest)
    yield* mustBeEmpty
    if (Option.isSome(fresh)) yield* DataDirectory.secrets.write(settings.dataDir, fresh.value)
    const originals = yield* Originals.restoreAll(folder)
    yield* tell("originals", originals)
    const rows = yield* sql.withTransaction(
      Effect.gen(function* () {
        // A server started meanwhile either writes first, and the import fails, or waits for this lock.
        yield* sql`lock table tenants in share row exclusive mode`
        yield* patient
        yield* Rows.pinned
        yield* mustBeEmpty
        return yield* readRows(folder, manifest)
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
