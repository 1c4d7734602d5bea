/**
 * Exports the whole store, or one tenant, to a folder: all rows of one snapshot, then the originals. Sealed values stay
 * sealed: under the master secret, or under a key that the operator gives.
 */
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import { AuditLog } from "../../capabilities/AuditLog.ts"
import * as SqlAudit from "../../capabilities/AuditLog/Sql.ts"
import * as DerivedKeys from "../../capabilities/SecretBox/DerivedKeys.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import type { TenantId } from "../../domain/Ids.ts"
import { onSnapshot } from "../../store/archive/Snapshot.ts"
import * as Tables from "../../store/archive/Tables.ts"
import { HeldJobs } from "../../store/moves/HeldJobs.ts"
import { reseal } from "../../usecases/operations/moves/ResealedRows.ts"
import type { Settings } from "../config/Config.ts"
import * as Secrets from "../config/Secrets.ts"
import { artifactStore } from "../Capabilities.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import * as ArchivedStore from "./ArchivedStore.ts"
import * as Manifest from "./Manifest.ts"
import * as Originals from "./Originals.ts"
import * as PartFile from "./PartFile.ts"
import * as Parts from "./Parts.ts"

const { ArchiveError } = PartFile

export interface ExportOptions {
  /** Includes the master secret in plain text. */
  readonly withSecret: boolean
  /** Connections that read rows at the same time. The embedded database has one. */
  readonly streams: number
  /** One tenant alone, and the key that seals its secrets; null: they stay sealed under the master secret. */
  readonly tenant: { readonly id: TenantId; readonly sealKey: Redacted.Redacted | null } | null
}

const countsOf = (parts: Iterable<Manifest.Part>) => {
  const counts = new Map<string, number>()
  for (const { rows, table } of parts) counts.set(table, (counts.get(table) ?? 0) + rows)
  return counts
}

const tenantOf = (id: TenantId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<{ readonly name: string; readonly state: string | null }>`
      select name, (select state from tenant_moves where tenant = id) as state from tenants where id = ${id}`
    if (found === undefined) return yield* new ArchiveError({ message: `There is no tenant ${id}.` })
    if (found.state !== null)
      return yield* new ArchiveError({
        message: `The tenant ${id} is being moved. End the move first, or export it where it is served.`
      })
    return { id, name: found.name }
  })

/** Rows of a tenant that another installation serves, or that are arriving, would be served where they are restored. */
const refuseMovingTenants = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [moving] = yield* sql<{ readonly tenant: string }>`
    select tenant from tenant_moves where state = 'away' and tenant in (select id from tenants) limit 1`
  if (moving === undefined) return
  return yield* new ArchiveError({
    message: `The tenant ${moving.tenant} is being moved and is not served here. End its move first with spoke tenant move --confirm or --rollback.`
  })
})

/** The audit entry, which is part of the export. */
const recordExport = (tenantId: TenantId) =>
  Effect.flatMap(AuditLog, (log) =>
    log.record({
      tenantId,
      actor: { type: "operator", id: "operator" },
      action: "tenant.export",
      target: tenantId,
      requestId: "command-line"
    })
  ).pipe(
    Effect.provide(SqlAudit.layerSql),
    Effect.mapError(() => new ArchiveError({ message: "The export could not be recorded in the audit log." }))
  )

interface Listed {
  readonly values: ReadonlyArray<unknown>
  readonly next: string | null
}

/** Writes a file with the values of all pages, one a line. */
const writeList = (folder: string, file: string, pageAfter: (after: string) => Effect.Effect<Listed>) =>
  Effect.gen(function* () {
    let count = 0
    const { bytes, sha256 } = yield* PartFile.write(path.join(folder, file), (take) =>
      Effect.gen(function* () {
        for (let after: string | null = ""; after !== null;) {
          const page: Listed = yield* pageAfter(after)
          count += page.values.length
          yield* take(page.values.map((value) => JSON.stringify(value)))
          after = page.next
        }
      })
    )
    return { count, written: { file, bytes, sha256 } }
  })

/** Writes the jobs that wait for workers, and the deliveries of channels. */
const writeLists = (folder: string, id: TenantId) =>
  Effect.gen(function* () {
    const heldJobs = yield* HeldJobs
    const jobs = yield* writeList(folder, Manifest.jobsName, (after) =>
      Effect.map(heldJobs.ofTenant(id, after), (page) => ({ values: page.jobs, next: page.next }))
    )
    const events = yield* writeList(folder, Manifest.eventsName, (after) =>
      Effect.map(heldJobs.readEvents(id, after), (page) => ({ values: page.events, next: page.next }))
    )
    yield* ArchivedStore.reportCount("jobs", jobs.count)
    yield* ArchivedStore.reportCount("events of channels", events.count)
    return { jobs: jobs.written, events: events.written }
  })

/** Writes everything to `folder`. Continues an export that was interrupted. */
export const exportTo = Effect.fn("Backup.exportTo")(function* (
  settings: Settings,
  folder: string,
  { streams: wantedStreams, tenant, withSecret }: ExportOptions
) {
  yield* ArchivedStore.requireStore(settings)
  const streams = ArchivedStore.isEmbedded(settings) ? 1 : wantedStreams
  return yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [table] = yield* sql<{
      readonly there: boolean
    }>`
      select exists (
        select from pg_class where relname = 'migrations' and relnamespace = to_regnamespace(quote_ident(current_schema()))
      ) as there`
    if (table?.there !== true) return yield* ArchivedStore.noStore(settings)
    const { masters } = yield* Secrets.Secrets
    const [current] = masters
    const sealKey = tenant?.sealKey ?? null
    const exported =
      tenant === null ? yield* Effect.as(refuseMovingTenants, null) : yield* tenantOf(tenant.id)
    if (exported !== null) yield* recordExport(exported.id)
    const given: Manifest.NewHeader = {
      spoke: "archive",
      format: 2,
      version: Package.version,
      migrations: yield* Tables.migrationsApplied,
      keys: sealKey === null ? masters.map(DerivedKeys.keyIdOf) : [DerivedKeys.keyIdOf(sealKey)],
      ...(withSecret ? { secret: current } : {}),
      ...(exported === null ? {} : { tenant: { ...exported, hasSealKey: sealKey !== null } })
    }
    const { add, end, finished, header } = yield* Manifest.begin(folder, given)
    const tables = yield* tenant === null ? Tables.tables : Tables.ofTenants
    const box = yield* Effect.provide(SecretBox, DerivedKeys.layer(masters))
    const { parts, writeParts } = yield* Parts.make({
      folder,
      tables,
      tenantId: tenant?.id ?? null,
      finished,
      add,
      reseal:
        tenant === null
          ? null
          : (table, rows) =>
              sealKey === null
                ? Effect.succeed(rows)
                : Effect.map(reseal(table, rows, box, box.under(sealKey)), (resealed) => resealed.rows),
      rowsPerPart: Parts.rowsPerPart
    })
    const lists = yield* Ref.make<Effect.Effect.Success<ReturnType<typeof writeLists>> | null>(null)
    // In the same snapshot: a job that is processed meanwhile changes rows.
    const writeOnce = yield* Effect.once(
      exported === null
        ? Effect.void
        : Effect.flatMap(writeLists(folder, exported.id), (written) => Ref.set(lists, written))
    )
    yield* onSnapshot(streams, Effect.zipRight(writeOnce, writeParts))
    const counts = countsOf(parts.values())
    for (const { table } of tables) yield* ArchivedStore.reportCount(table, counts.get(table) ?? 0)
    const { list, missing } = yield* Originals.saveAll(folder, tenant?.id ?? null)
    yield* ArchivedStore.reportCount("originals", list.count)
    yield* end({
      ...header,
      tables: tables.map(({ columns, table, types }) => ({ table, columns, types })),
      parts: [...parts.values()],
      originals: list,
      ...(yield* Ref.get(lists))
    })
    const totals: ArchivedStore.Totals = {
      rows: [...counts.values()].reduce((total, rows) => total + rows, 0),
      originals: list.count,
      missing
    }
    return totals
  }).pipe(
    Effect.provide(HeldJobs.Default),
    Effect.provide(Secrets.layer(settings)),
    forEveryTenant("archive"),
    Effect.provide(artifactStore(settings)),
    Effect.provide(database(ArchivedStore.withConnections(settings, streams + 1))),
    Effect.scoped
  )
})
