/** Vectors of a tenant that is moved between databases that store them in different forms. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { forEveryTenant } from "../../../src/concurrency/TenantSession.ts"
import { encodeFloat32 } from "../../../src/domain/knowledge/StoredVector.ts"
import * as RowTexts from "../../../src/store/archive/RowTexts.ts"
import * as Tables from "../../../src/store/archive/Tables.ts"
import { sqlStateOf } from "../../../src/store/Database.ts"
import { conversionStart, VectorEncodingStore } from "../../../src/store/knowledge/VectorEncoding.ts"
import { Arrivals } from "../../../src/store/moves/Arrivals.ts"
import { Departures } from "../../../src/store/moves/Departures.ts"
import { MoveGuards } from "../../../src/store/moves/Guards.ts"
import { MoveStore } from "../../../src/store/moves/Moves.ts"
import { known, page, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerHashing } from "../../HashingEmbedder.ts"
import { onEmbeddedPgvector } from "../../servers/PgvectorServer.ts"
import { reset } from "../../TestDatabase.ts"

const driver = "driver"
const services = Layer.mergeAll(
  stores,
  layerHashing(),
  Arrivals.Default,
  Departures.Default,
  MoveGuards.Default,
  MoveStore.Default,
  VectorEncodingStore.Default
)

onEmbeddedPgvector("Vectors of a tenant that is being moved", (it) => {
  it.scoped("arrive as bytes, are converted to pgvector's form during the move, and stay equal", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const arrivals = yield* Arrivals
      const guards = yield* MoveGuards
      const moves = yield* MoveStore
      const { convert } = yield* VectorEncodingStore
      const scope = yield* Fixtures.agent()
      const { tenantId } = scope
      yield* known(scope, [page("Backups are made every night."), page("They are kept for a week.")])
      const table = (yield* Tables.ofTenants).find((each) => each.table === "chunk_embeddings")
      if (table === undefined) return yield* Effect.die("There is no such table.")
      const range = { tenantId, after: null, upTo: null }
      const digest = sql.withTransaction(
        Effect.zipRight(RowTexts.useFixedFormats, RowTexts.digestOfRange(table, range))
      )
      const forms = Effect.map(
        sql<{ readonly encoding: number }>`select encoding::int as encoding from chunk_embeddings`,
        (rows) => rows.map(({ encoding }) => encoding)
      )
      const noted = sql`select key from tenant_moves_changes`
      const { rows } = yield* Effect.flatMap(Departures, (departures) =>
        departures.page(tenantId, table, { after: null, upTo: null })
      )
      const before = yield* digest
      expect([yield* forms, before.rows]).toEqual([[2, 2], 2])

      yield* moves.begin(tenantId, {
        driver,
        move: "move",
        role: "destination",
        servedAt: "https://a.example"
      })
      yield* guards.install(tenantId)
      yield* Effect.gen(function* () {
        // A round replaces rows that are in pgvector's form already.
        yield* arrivals.changes(tenantId, driver, [{ table, rows, gone: [] }])
        expect([yield* forms, yield* digest]).toEqual([[1, 1], before])
        expect((yield* convert(conversionStart, 100)).count).toBe(2)
        expect([yield* forms, yield* digest, yield* noted]).toEqual([[2, 2], before, []])
        const refused = yield* Effect.flip(sql`update chunk_embeddings set version = version + 1`)
        expect(sqlStateOf(refused)).toBe("SM001")

        // Float32 counts as a changed row: it is converted where the tenant is served, and the move copies it.
        const float = Buffer.from(encodeFloat32(Float32Array.from({ length: 8 }, Math.cos))).toString(
          "base64"
        )
        yield* arrivals.writeAsDriver(
          tenantId,
          driver,
          sql`update chunk_embeddings set encoding = 0, embedding = decode(${float}, 'base64'), vector = null, source_id = null`
        )
        expect(yield* convert(conversionStart, 100)).toEqual({ count: 0, next: null })
        yield* sql`update tenant_moves set state = 'serving'`
        expect((yield* convert(conversionStart, 100)).count).toBe(2)
        expect([yield* forms, (yield* noted).length]).toEqual([[2, 2], 2])
      }).pipe(Effect.ensuring(Effect.orDie(guards.remove(tenantId))))
      yield* moves.forget(tenantId)
    }).pipe(forEveryTenant("archive"), Effect.provide(services))
  )
})
