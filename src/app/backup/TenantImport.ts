/**
 * Imports an archive of one tenant into an installation that may have others and serve them. The tenant is not served
 * before all of it has arrived and was compared. An interrupted import continues; a refused one leaves nothing.
 */
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { keyIdOf } from "../../capabilities/SecretBox/DerivedKeys.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import * as Wire from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import * as RowTexts from "../../store/archive/RowTexts.ts"
import { withoutTimeLimits } from "../../store/archive/Snapshot.ts"
import * as Tables from "../../store/archive/Tables.ts"
import { migrate, planMigrations } from "../../store/Database.ts"
import type { Settings } from "../config/Config.ts"
import * as Secrets from "../config/Secrets.ts"
import { database } from "../Live.ts"
import { localSide } from "../moves/LocalSide.ts"
import { MoveFailed, type Side } from "../moves/Side.ts"
import * as TenantStore from "../moves/TenantStore.ts"
import * as Package from "../Package.ts"
import { chooseVector } from "../Vector.ts"
import * as ArchivedStore from "./ArchivedStore.ts"
import * as Manifest from "./Manifest.ts"
import * as Originals from "./Originals.ts"
import * as PartFile from "./PartFile.ts"

const { ArchiveError } = PartFile

export interface ImportOptions {
  /** The key that the export was sealed with; null: the installation has the archive's master secret. */
  readonly sealKey: Redacted.Redacted | null
  /** Parts that are written at the same time. The embedded database writes one. */
  readonly streams: number
}

/** Rows, and jobs, of one request. */
const rowsPerRequest = 200
const jobsPerRequest = 100
/** Originals in memory at a time. */
const maxConcurrentOriginals = 4

const tenantOfArchive = ({ tenant }: Manifest.Manifest, folder: string) =>
  tenant === undefined
    ? new ArchiveError({
        message: `${folder} has a whole store. Import it into an empty database with spoke import ${folder}.`
      })
    : Effect.succeed(tenant)

/** Fails unless the secrets of the archive can be opened. */
const checkSecrets = (
  settings: Settings,
  { keys, tenant }: Manifest.Manifest,
  sealKey: Redacted.Redacted | null
) =>
  Effect.gen(function* () {
    if (tenant?.hasSealKey === true) {
      if (sealKey !== null && keys.includes(keyIdOf(sealKey))) return
      return yield* new ArchiveError({
        message:
          sealKey === null
            ? "The secrets of the archive are sealed under a key. Give the file that it was exported with: --key-file."
            : "This is not the key that the archive was exported with."
      })
    }
    const { masters } = yield* Secrets.Secrets
    const ids = masters.map(keyIdOf)
    if (keys.every((id) => ids.includes(id))) return
    return yield* new ArchiveError({
      message: `${ArchivedStore.wrongSecret(settings).message} Or export the tenant with a key of its own: --key-file.`
    })
  })

const matchTables = ({ tables }: Manifest.Manifest) =>
  Effect.gen(function* () {
    const tenantTables = yield* Tables.ofTenants
    return yield* Effect.forEach(tables, (shape) => Tables.matching(tenantTables, shape))
  })

const sendOriginals = (side: Side, folder: string) =>
  Originals.listOriginals(folder).pipe(
    Stream.grouped(jobsPerRequest),
    Stream.mapEffect((refs) => side.ask(new Wire.MissingOriginals({ refs: Array.from(refs) }))),
    Stream.flatMap(({ refs }) => Stream.fromIterable(refs)),
    Stream.mapEffect(
      (ref) => Effect.flatMap(Originals.load(folder, ref), (bytes) => side.putOriginal(ref, bytes)),
      { concurrency: maxConcurrentOriginals }
    ),
    Stream.runDrain
  )

/** The rows of a part, in the order of the table's columns here. */
const writePart = (
  side: Side,
  driver: string,
  folder: string,
  part: Manifest.Part,
  sealKey: Redacted.Redacted | null
) =>
  Stream.runForEach(
    PartFile.read(path.join(folder, part.file)).pipe(Stream.flattenIterables, Stream.grouped(rowsPerRequest)),
    (rows) => side.ask(new Wire.WritePage({ driver, table: part.table, rows: Array.from(rows), sealKey }))
  ).pipe(
    Effect.zipRight(side.ask(new Wire.Arrived({ table: part.table, after: part.after, upTo: part.upTo })))
  )

/** Fails unless the tenant has as many rows as the parts, and the same. */
const verifyRows = (tenantId: TenantId, table: Tables.Table, parts: ReadonlyArray<Manifest.Part>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const expected = RowTexts.sumOfDigests(parts)
    const digest = RowTexts.digestOfRange(Tables.withoutSealed(table), { tenantId, after: null, upTo: null })
    const stored = yield* sql.withTransaction(
      Effect.zipRight(Effect.zipRight(withoutTimeLimits, RowTexts.useFixedFormats), digest)
    )
    if (stored.rows === expected.rows && stored.hash === expected.hash) return stored.rows
    return yield* new MoveFailed({
      reason: "differs",
      message: `The rows of ${table.table} differ from those of the archive (${stored.rows} instead of ${expected.rows}).`
    })
  })

const writeLists = (side: Side, driver: string, folder: string, { events, jobs }: Manifest.Manifest) => {
  const sendEach = <A, E>(
    file: { readonly file: string } | undefined,
    write: (values: ReadonlyArray<unknown>) => Effect.Effect<A, E>
  ) =>
    file === undefined
      ? Effect.void
      : Stream.runForEach(
          PartFile.read(path.join(folder, file.file)).pipe(
            Stream.flattenIterables,
            Stream.mapEffect((line) =>
              Effect.mapError(Schema.decode(Schema.parseJson(Schema.Unknown))(line), () =>
                PartFile.damaged(file.file)
              )
            ),
            Stream.grouped(jobsPerRequest)
          ),
          (values) => write(Array.from(values))
        )
  return Effect.zipRight(
    sendEach(events, (values) => side.ask(new Wire.WriteEvents({ driver, events: values }))),
    sendEach(jobs, (values) =>
      Effect.flatMap(Effect.orDie(Schema.decodeUnknown(Schema.Array(Wire.HeldJob))(values)), (given) =>
        side.ask(new Wire.WriteJobs({ driver, jobs: given }))
      )
    )
  )
}

const discardMove = (side: Side, driver: string) =>
  side
    .ask(new Wire.RemoveSome({ driver }))
    .pipe(
      Effect.repeat({ until: ({ more }) => !more }),
      Effect.zipRight(side.ask(new Wire.Forget({ driver })))
    )

/**
 * Fails if tenants are served from a database whose schema is older. Only who operates it knows when it may be locked,
 * and whether running servers know the newer schema.
 */
const refusePendingMigrations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [made] = yield* sql<{ readonly tables: boolean }>`select to_regclass('tenants') is not null as tables`
  if (made?.tables !== true) return
  const tenants = yield* sql`/* every tenant: archive */ select 1 from tenants limit 1`
  if (tenants.length === 0) return
  const pending = yield* planMigrations(Package.migrations)
  if (pending.length === 0) return
  return yield* new ArchiveError({
    message:
      `The database has tenants, and ${pending.length} ${pending.length === 1 ? "migration is" : "migrations are"} ` +
      "pending. Run spoke migrate first; spoke migrate --plan shows what it does."
  })
})

/** Runs `work` on the installation's migrated database, which may have other tenants. */
const withInstallation = <A, E, R>(settings: Settings, streams: number, work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    yield* refusePendingMigrations
    yield* migrate(Package.migrations)
    yield* chooseVector(settings)
    return yield* Effect.provide(work, TenantStore.layer(settings))
  }).pipe(
    forEveryTenant("archive"),
    Effect.provide(database(ArchivedStore.withConnections(settings, streams + 1))),
    Effect.scoped
  )

/** Imports the tenant of the archive, or continues an import of it. */
export const importTenant = Effect.fn("Backup.importTenant")(function* (
  settings: Settings,
  folder: string,
  { sealKey, streams: wantedStreams }: ImportOptions
) {
  const manifest = yield* Manifest.readWhole(folder)
  const { id } = yield* tenantOfArchive(manifest, folder)
  const streams = ArchivedStore.isEmbedded(settings) ? 1 : wantedStreams
  return yield* withInstallation(
    settings,
    streams,
    Effect.gen(function* () {
      yield* ArchivedStore.checkMigrations(manifest)
      yield* checkSecrets(settings, manifest, sealKey)
      const tables = yield* matchTables(manifest)
      const side = yield* localSide("database", id)
      const driver = randomBytes(24).toString("base64url")
      const { state } = yield* side.ask(
        new Wire.Begin({ driver, move: manifest.id, role: "destination", servedAt: null })
      )
      const writeTables = Effect.gen(function* () {
        yield* sendOriginals(side, folder)
        const arrived = new Set((yield* side.ask(new Wire.Parts())).parts.map(Manifest.partKey))
        for (const table of tables) {
          const parts = manifest.parts.filter((part) => part.table === table.table)
          yield* Effect.forEach(
            parts.filter((part) => !arrived.has(Manifest.partKey(part))),
            (part) => writePart(side, driver, folder, part, sealKey),
            { concurrency: streams, discard: true }
          )
          const count = yield* verifyRows(id, table, parts)
          yield* ArchivedStore.reportCount(table.table, count)
        }
        yield* writeLists(side, driver, folder, manifest)
        yield* side.ask(new Wire.Serve({ driver, handovers: 1 }))
      })
      // An earlier command that was killed after this point has stored everything.
      if (state !== "serving") yield* writeTables
      yield* side.ask(new Wire.Forget({ driver }))
      const { rows } = RowTexts.sumOfDigests(manifest.parts)
      const totals: ArchivedStore.Totals = { rows, originals: manifest.originals.count, missing: 0 }
      return totals
    }).pipe(
      // A refused import leaves nothing behind. An interrupted one can continue.
      Effect.tapErrorTag("MoveFailed", ({ reason }) =>
        reason === "conflict" || reason === "differs"
          ? Effect.ignore(
              Effect.flatMap(localSide("database", id), (side) =>
                Effect.gen(function* () {
                  const driver = randomBytes(24).toString("base64url")
                  yield* side.ask(
                    new Wire.Begin({ driver, move: manifest.id, role: "destination", servedAt: null })
                  )
                  yield* discardMove(side, driver)
                })
              )
            )
          : Effect.void
      )
    )
  )
})

/** Removes what an interrupted import of the archive has stored. */
export const discardImport = Effect.fn("Backup.discardImport")(function* (
  settings: Settings,
  folder: string
) {
  const manifest = yield* Manifest.read(folder)
  const { id } = yield* tenantOfArchive(manifest, folder)
  yield* withInstallation(
    settings,
    1,
    Effect.gen(function* () {
      const side = yield* localSide("database", id)
      const { move } = yield* side.ask(new Wire.Progress())
      if (move === null || move.move !== manifest.id)
        return yield* new ArchiveError({ message: "No import of this archive was begun here." })
      const driver = randomBytes(24).toString("base64url")
      yield* side.ask(new Wire.Begin({ driver, move: manifest.id, role: "destination", servedAt: null }))
      if (move.state !== "away") {
        yield* side.ask(new Wire.Forget({ driver }))
        return yield* new ArchiveError({
          message: "The tenant is served here already: the import was complete. Nothing was removed."
        })
      }
      return yield* discardMove(side, driver)
    })
  )
})
