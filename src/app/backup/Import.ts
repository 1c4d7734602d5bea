/** Imports an archive of the whole store into an empty database: all rows in one transaction, or none. */
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { keyIdOf } from "../../capabilities/SecretBox/DerivedKeys.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import * as RowTexts from "../../store/archive/RowTexts.ts"
import { withoutTimeLimits } from "../../store/archive/Snapshot.ts"
import * as Tables from "../../store/archive/Tables.ts"
import { migrate } from "../../store/Database.ts"
import type { Settings } from "../config/Config.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { artifactStore } from "../Capabilities.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import { chooseVector } from "../Vector.ts"
import * as ArchivedStore from "./ArchivedStore.ts"
import * as Manifest from "./Manifest.ts"
import * as Originals from "./Originals.ts"
import * as PartFile from "./PartFile.ts"

const { ArchiveError } = PartFile

/**
 * The secrets to store in a new data directory; none when it has secrets already. Fails unless they fit the archive.
 */
const secretsFor = (settings: Settings, { keys, secret: included }: Manifest.Header) =>
  Effect.gen(function* () {
    const stored = ArchivedStore.isEmbedded(settings)
      ? yield* DataDirectory.secrets.read(settings.dataDir)
      : Option.none()
    const storedSecret = Option.map(stored, ({ secret }) => secret)
    const includedSecret =
      ArchivedStore.isEmbedded(settings) && settings.secrets.length === 0 && Option.isNone(storedSecret)
        ? Option.fromNullable(included)
        : Option.none()
    const secrets = settings.secrets.length > 0 ? settings.secrets : Option.toArray(storedSecret)
    const ids = [...secrets, ...Option.toArray(includedSecret)].map(keyIdOf)
    // Values that were not resealed since the last rotation need the earlier secrets.
    if (!keys.every((id) => ids.includes(id))) return yield* ArchivedStore.wrongSecret(settings)
    return Option.map(includedSecret, (secret) => ({
      secret,
      operatorToken: Redacted.make(randomBytes(32).toString("base64url"))
    }))
  })

const notEmpty = (filled: ReadonlyArray<string>) =>
  new ArchiveError({
    message: `The database is not empty (${filled.slice(0, 3).join(", ")}): import into a new one. Nothing was changed.`
  })

const refuseNonEmpty = Effect.gen(function* () {
  const filled = yield* Tables.nonEmptyTables
  if (filled.length > 0) return yield* notEmpty(filled)
})

/** Before the migrations: those of this version must not be applied to the database of another one by mistake. */
const refuseTenants = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [table] = yield* sql<{
    readonly exists: boolean
  }>`select to_regclass('tenants') is not null as exists`
  if (table?.exists !== true) return
  const [row] = yield* sql<{ readonly some: boolean }>`select exists (select from tenants) as some`
  if (row?.some === true) return yield* notEmpty(["tenants"])
})

/** Rows of one statement; few, because a row may be long. */
const rowsPerStatement = 200

const importPart = (folder: string, table: Tables.Table, { file }: Manifest.Part) =>
  Stream.runForEach(
    PartFile.read(path.join(folder, file)).pipe(Stream.flattenIterables, Stream.grouped(rowsPerStatement)),
    (rows) => RowTexts.write(table, Array.from(rows))
  )

/** Fails unless the table has the rows of its parts. */
const verifyRows = (table: Tables.Table, parts: ReadonlyArray<Manifest.Part>) =>
  Effect.gen(function* () {
    const expected = RowTexts.sumOfDigests(parts)
    const stored = yield* RowTexts.digestOfRange(table, { tenantId: null, after: null, upTo: null })
    if (stored.rows === expected.rows && stored.hash === expected.hash) return stored.rows
    return yield* new ArchiveError({
      message: `The rows of ${table.table} differ from those of the archive (${stored.rows} instead of ${expected.rows}). Nothing was changed.`
    })
  })

const importRows = (folder: string, { parts, tables }: Manifest.Manifest) =>
  Effect.gen(function* () {
    const allTables = yield* Tables.tables
    const matched = yield* Effect.forEach(tables, (shape) => Tables.matching(allTables, shape))
    let rows = 0
    for (const table of matched) {
      const partsOfTable = parts.filter((part) => part.table === table.table)
      yield* Effect.forEach(partsOfTable, (part) => importPart(folder, table, part), { discard: true })
      const count = yield* verifyRows(table, partsOfTable)
      yield* ArchivedStore.reportCount(table.table, count)
      rows += count
    }
    yield* RowTexts.raiseSequences(allTables)
    return rows
  })

/** Imports `folder` into an empty database: all rows in one transaction, or none. */
export const importFrom = Effect.fn("Backup.importFrom")(function* (settings: Settings, folder: string) {
  const manifest = yield* Manifest.readWhole(folder)
  if (manifest.tenant !== undefined) {
    return yield* new ArchiveError({
      message: `${folder} has one tenant. Import it with spoke tenant import ${folder}.`
    })
  }
  return yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const newSecrets = yield* secretsFor(settings, manifest)
    yield* refuseTenants
    yield* migrate(Package.migrations)
    yield* chooseVector(settings)
    yield* ArchivedStore.checkMigrations(manifest)
    yield* refuseNonEmpty
    if (Option.isSome(newSecrets)) yield* DataDirectory.secrets.write(settings.dataDir, newSecrets.value)
    const originals = yield* Originals.restoreAll(folder)
    yield* ArchivedStore.reportCount("originals", originals)
    const rows = yield* sql.withTransaction(
      Effect.gen(function* () {
        // A server started meanwhile either writes first, and the import fails, or waits for this lock.
        yield* sql`lock table tenants in share row exclusive mode`
        yield* withoutTimeLimits
        yield* RowTexts.useFixedFormats
        yield* refuseNonEmpty
        return yield* importRows(folder, manifest)
      })
    )
    yield* sql`analyze`
    const totals: ArchivedStore.Totals = { rows, originals, missing: 0 }
    return totals
  }).pipe(
    forEveryTenant("archive"),
    Effect.provide(artifactStore(settings)),
    Effect.provide(database(settings)),
    Effect.scoped
  )
})
