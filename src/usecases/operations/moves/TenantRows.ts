/** The rows and originals of a tenant that moves: read where it is served, and stored where it arrives. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { ArtifactStore, refOf } from "../../../capabilities/ArtifactStore.ts"
import { SecretBox, type Sealing } from "../../../capabilities/SecretBox.ts"
import { inSharedFiber } from "../../../concurrency/InOwnFiber.ts"
import type * as Wire from "../../../domain/accounts/TenantMove.ts"
import { Conflict, NotFound, ServiceUnavailable } from "../../../domain/Errors.ts"
import type { TenantId } from "../../../domain/Ids.ts"
import type { ArtifactRef } from "../../../domain/knowledge/Source.ts"
import { refsAfter } from "../../../store/archive/Originals.ts"
import * as Tables from "../../../store/archive/Tables.ts"
import { ArtifactRows } from "../../../store/knowledge/ArtifactRows.ts"
import { ArrivedOriginals } from "../../../store/moves/ArrivedOriginals.ts"
import { type ArrivalRefused, Arrivals } from "../../../store/moves/Arrivals.ts"
import { Departures } from "../../../store/moves/Departures.ts"
import { MoveStore } from "../../../store/moves/Moves.ts"
import { Artifacts } from "../../knowledge/Artifacts.ts"
import { reseal } from "./ResealedRows.ts"

const unknownMove = () => new NotFound({ message: "The tenant is not being moved." })
const unknownTable = (name: string) =>
  new NotFound({ message: `There is no table ${name} with rows of tenants.` })

const refused = ({ message, reason }: ArrivalRefused) => new Conflict({ message, details: { reason } })

export class TenantRows extends Effect.Service<TenantRows>()("usecases/operations/TenantRows", {
  dependencies: [Arrivals.Default, ArrivedOriginals.Default, Departures.Default, MoveStore.Default],
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const moves = yield* MoveStore
    const departures = yield* Departures
    const arrivals = yield* Arrivals
    const arrivedOriginals = yield* ArrivedOriginals
    const artifacts = yield* Artifacts
    const claims = yield* ArtifactRows
    const store = yield* ArtifactStore
    const box = yield* SecretBox

    const withSql = Effect.provideService(SqlClient.SqlClient, sql)
    /** Cached, because tables change only by migrations, which run in another process. */
    const tables = inSharedFiber(yield* Effect.cached(withSql(Effect.orDie(Tables.ofTenants))))

    const tableOf = (name: string) =>
      Effect.flatMap(tables, (all) => {
        const table = all.find((each) => each.table === name)
        return table === undefined ? unknownTable(name) : Effect.succeed(table)
      })

    const sealingOf = (key: Redacted.Redacted | null): Sealing => (key === null ? box : box.under(key))

    const split = (tenantId: TenantId, { after, rows, table }: Wire.Split) =>
      Effect.gen(function* () {
        const upTo = yield* departures.boundary(tenantId, yield* tableOf(table), after, rows)
        return { upTo }
      })

    const readPage = (tenantId: TenantId, { after, sealKey, table: name, upTo }: Wire.ReadPage) =>
      Effect.gen(function* () {
        const table = yield* tableOf(name)
        const { next, rows } = yield* departures.page(tenantId, table, { after, upTo })
        return { rows: (yield* reseal(table, rows, box, sealingOf(sealKey))).rows, next }
      })

    const writePage = (tenantId: TenantId, { driver, rows: given, sealKey, table: name }: Wire.WritePage) =>
      Effect.gen(function* () {
        const table = yield* tableOf(name)
        const { rows, unreadable } = yield* reseal(table, given, sealingOf(sealKey), box)
        yield* arrivals
          .page(tenantId, driver, table, rows)
          .pipe(Effect.catchTags({ ArrivalRefused: refused, SqlError: Effect.die }))
        return { unreadable }
      })

    const resealChanges = (found: Wire.ChangeSet, sealKey: Redacted.Redacted | null) =>
      Effect.forEach(found.changes, (change) =>
        Effect.gen(function* () {
          const { rows } = yield* reseal(yield* tableOf(change.table), change.rows, box, sealingOf(sealKey))
          return { ...change, rows }
        })
      )

    const tablesNamed = (names: ReadonlyArray<string>) =>
      Effect.map(tables, (all) => all.filter(({ table }) => names.includes(table)))

    const readChanges = (tenantId: TenantId, { limit, sealKey, tables: names }: Wire.ReadChanges) =>
      Effect.gen(function* () {
        const found = yield* departures.changes(tenantId, yield* tablesNamed(names), limit)
        return { ...found, changes: yield* resealChanges(found, sealKey) }
      })

    const readPageWithChanges = (tenantId: TenantId, request: Wire.ReadPageWithChanges) =>
      Effect.gen(function* () {
        const { after, limit, sealKey, tables: names, upTo } = request
        const table = yield* tableOf(request.table)
        const { changes: found, page } = yield* departures.pageWithChanges(
          tenantId,
          table,
          { after, upTo },
          yield* tablesNamed(names),
          limit
        )
        const { rows } = yield* reseal(table, page.rows, box, sealingOf(sealKey))
        return { ...found, changes: yield* resealChanges(found, sealKey), page: { rows, next: page.next } }
      })

    const writeChanges = (tenantId: TenantId, { changes, driver, sealKey }: Wire.WriteChanges) =>
      Effect.gen(function* () {
        let unreadable = 0
        const given = yield* Effect.forEach(changes, (change) =>
          Effect.gen(function* () {
            const table = yield* tableOf(change.table)
            const resealed = yield* reseal(table, change.rows, sealingOf(sealKey), box)
            unreadable += resealed.unreadable
            return { table, rows: resealed.rows, gone: change.gone }
          })
        )
        yield* arrivals
          .changes(tenantId, driver, given)
          .pipe(Effect.catchTags({ ArrivalRefused: refused, SqlError: Effect.die }))
        return { unreadable }
      })

    const sample = (tenantId: TenantId, { after, rows, table }: Wire.Sample) =>
      Effect.flatMap(tableOf(table), (known) => departures.sample(tenantId, known, after, rows))

    const compare = (tenantId: TenantId, { keys, table }: Wire.Compare) =>
      Effect.flatMap(tableOf(table), (known) => departures.digest(tenantId, known, keys))

    const count = (tenantId: TenantId, { changing, table }: Wire.Count) =>
      Effect.flatMap(tableOf(table), (known) => departures.count(tenantId, known, changing))

    /** Stores the bytes of an original, and keeps them until the move ends. */
    const putOriginal = Effect.fn("TenantMoves.putOriginal")(function* (
      tenantId: TenantId,
      bytes: Uint8Array,
      expected: ArtifactRef
    ) {
      if (Option.isNone(yield* moves.find(tenantId))) return yield* unknownMove()
      if (refOf(bytes) !== expected)
        return yield* new Conflict({ message: "These are not the bytes of the original." })
      const { claim, ref } = yield* artifacts.keep(bytes)
      yield* arrivedOriginals.keep(tenantId, ref)
      yield* claims.releaseClaim(claim)
      return { ref }
    })

    /** The bytes of an original of the tenant. */
    const getOriginal = Effect.fn("TenantMoves.getOriginal")(function* (
      tenantId: TenantId,
      ref: ArtifactRef
    ) {
      if (Option.isNone(yield* moves.find(tenantId))) return yield* unknownMove()
      return yield* Effect.mapError(
        store.get(ref),
        () => new ServiceUnavailable({ message: "The original cannot be read now. Try again later." })
      )
    })

    const refs = (tenantId: TenantId, { after }: Wire.Originals) =>
      Effect.map(Effect.orDie(withSql(refsAfter(tenantId, after))), (found) => ({ refs: found }))

    const missing = (tenantId: TenantId, { refs: given }: Wire.MissingOriginals) =>
      Effect.map(arrivedOriginals.missing(tenantId, given), (found) => ({ refs: found }))

    const filledTables = (tenantId: TenantId) =>
      Effect.gen(function* () {
        return { tables: yield* departures.filledTables(tenantId, yield* tables) }
      })

    const parts = (tenantId: TenantId) => Effect.map(arrivals.parts(tenantId), (found) => ({ parts: found }))

    const recordArrival = (tenantId: TenantId, part: Wire.Arrived) =>
      Effect.as(arrivals.recordArrival(tenantId, part), {})

    const acknowledge = (tenantId: TenantId, { seqs }: Wire.Acknowledge) =>
      Effect.as(departures.acknowledge(tenantId, seqs), {})

    /** Runs `work` in a transaction if the tenant is not served here and `driver` drives its move. */
    const whileAway = <A>(tenantId: TenantId, driver: string, work: Effect.Effect<A>) =>
      arrivals
        .writeAsDriver(tenantId, driver, work)
        .pipe(Effect.catchTags({ ArrivalRefused: refused, SqlError: Effect.die }))

    /** Removes some rows of a tenant that is not served here. */
    const removeSome = Effect.fn("TenantRows.removeSome")(function* (tenantId: TenantId, driver: string) {
      for (const table of (yield* tables).toReversed()) {
        const more = yield* arrivals
          .removeSome(tenantId, driver, table)
          .pipe(Effect.catchTags({ ArrivalRefused: refused, SqlError: Effect.die }))
        if (more) return true
      }
      return false
    })

    return {
      tables,
      split,
      readPage,
      readPageWithChanges,
      writePage,
      filledTables,
      parts,
      recordArrival,
      readChanges,
      writeChanges,
      acknowledge,
      sample,
      compare,
      count,
      refs,
      missing,
      whileAway,
      removeSome,
      getOriginal,
      putOriginal,
      release: arrivedOriginals.release
    } as const
  })
}) {}
