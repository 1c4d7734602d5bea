/** An import of a tenant whose command was killed after the tenant was served, and before the import was over. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { exportTo } from "../../src/app/backup/Export.ts"
import { discardImport, importTenant } from "../../src/app/backup/TenantImport.ts"
import { fromRecord } from "../../src/app/config/Config.ts"
import { localSide } from "../../src/app/moves/LocalSide.ts"
import * as TenantStore from "../../src/app/moves/TenantStore.ts"
import * as Package from "../../src/app/Package.ts"
import { forEveryTenant } from "../../src/concurrency/TenantSession.ts"
import * as Wire from "../../src/domain/accounts/TenantMove.ts"
import type { TenantId } from "../../src/domain/Ids.ts"
import { layerEmbedded, migrate } from "../../src/store/Database.ts"
import * as Fixtures from "../Fixtures.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-import-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const settingsIn = (dataDir: string) =>
  fromRecord(
    {
      SPOKE_DATA_DIR: dataDir,
      SPOKE_SECRET: "the master secret of both, long enough"
    },
    false
  )

const inDatabase = <A, E>(dataDir: string, work: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.provide(forEveryTenant("archive")(work), layerEmbedded({ dataDir }))

const moves = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`select * from tenant_moves`)

/** What a killed command leaves: the move whose tenant is served. */
const leaveMove = (tenantId: TenantId, archive: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { manifest } = JSON.parse(Fs.readFileSync(Path.join(archive, "manifest.json"), "utf8"))
    const { id } = JSON.parse(manifest)
    yield* sql`
      insert into tenant_moves (tenant, move, role, state, handovers, driver)
      values (${tenantId}, ${id}, 'destination', 'serving', 1, 'killed')`
  })

it.scopedLive(
  "An import whose command was killed when the tenant was served is over for every later command",
  () =>
    Effect.gen(function* () {
      const root = yield* folder
      const [from, to, archive] = [Path.join(root, "from"), Path.join(root, "to"), Path.join(root, "archive")]
      const [origin, destination] = [yield* settingsIn(from), yield* settingsIn(to)]
      const { tenantId } = yield* inDatabase(
        from,
        Effect.zipRight(migrate(Package.migrations), Fixtures.agent())
      )
      yield* exportTo(origin, archive, {
        withSecret: false,
        streams: 1,
        tenant: { id: tenantId, sealKey: null }
      })
      const options = { sealKey: null, streams: 1 }
      const imported = yield* importTenant(destination, archive, options)
      expect(imported.rows).toBeGreaterThan(2)

      yield* inDatabase(to, leaveMove(tenantId, archive))
      const discarded = yield* Effect.flip(discardImport(destination, archive))
      expect(discarded.message).toContain("The tenant is served here already")
      expect(yield* inDatabase(to, moves)).toEqual([])

      yield* inDatabase(to, leaveMove(tenantId, archive))
      expect(yield* importTenant(destination, archive, options)).toEqual(imported)
      expect(yield* inDatabase(to, moves)).toEqual([])

      yield* inDatabase(to, leaveMove(tenantId, archive))
      const begun = yield* inDatabase(
        to,
        Effect.gen(function* () {
          const side = yield* localSide("database", tenantId)
          const { move } = yield* side.ask(new Wire.Facts())
          const next = { driver: "next", move: "next", servedAt: "https://eu.example.com" }
          const state = yield* side.ask(new Wire.Begin({ ...next, role: "origin" }))
          return { told: move, ...state }
        }).pipe(Effect.provide(TenantStore.layer(destination)))
      )
      expect(begun).toMatchObject({ told: null, move: "next", role: "origin", handovers: 0 })
    }),
  120_000
)
