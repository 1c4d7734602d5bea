/** Writes the rows of a tenant that is moved here. It is not served here meanwhile, so nothing else writes them. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { RowKey, type TablePart } from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import * as RowTexts from "../archive/RowTexts.ts"
import type { Table } from "../archive/Tables.ts"
import { DatabaseFailure, sqlStateOf } from "../database/Failure.ts"
import * as Rows from "../Rows.ts"
import { MoveStore } from "./Moves.ts"
import * as RowSets from "./RowSets.ts"

/**
 * The rows cannot be stored here.
 *
 * - `order`: a row that they refer to, or that has their unique value, has not been changed as at the origin yet.
 * - `conflict`: another tenant has a value that may exist only once.
 * - `differs`: the stored rows are not equal to the given ones.
 * - `taken`: another command drives the move, or the tenant is served here.
 */
export class ArrivalRefused extends Schema.TaggedError<ArrivalRefused>()("ArrivalRefused", {
  reason: Schema.Literal("order", "conflict", "differs", "taken"),
  message: Schema.String
}) {}

/** Rows and changes to be stored of one table. */
export interface TableChanges {
  readonly table: Table
  readonly rows: ReadonlyArray<string>
  readonly gone: ReadonlyArray<RowKey>
}

/** Rows that one statement deletes. */
const rowsPerRemoval = 2_000

const keyText = Schema.parseJson(Schema.NullOr(RowKey))
const encodeKey = Schema.encodeSync(keyText)
const decodeKey = Schema.decodeSync(keyText)

const StoredPart = Schema.Struct({
  table: Schema.String,
  after: Schema.String,
  upTo: Schema.NullOr(Schema.String)
})
const decodeParts = Schema.decodeUnknown(Schema.Array(StoredPart))

const isOutOfOrder = (error: unknown) => ["23505", "23503"].includes(sqlStateOf(error) ?? "")

const outOfOrder = (what: string) =>
  new ArrivalRefused({ reason: "order", message: `Rows of ${what} cannot be stored before others.` })

export class Arrivals extends Effect.Service<Arrivals>()("store/moves/Arrivals", {
  dependencies: [MoveStore.Default],
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const moves = yield* MoveStore
    const withClient = Effect.provideService(SqlClient.SqlClient, sql)

    /** Whether the unique index names no tenant, so that another tenant may have its values. */
    const isShared = (index: string) =>
      Effect.map(
        sql<{ readonly shared: boolean }>`
          select not exists (
            select from pg_attribute a
            where a.attrelid = i.indrelid and a.attnum = any(i.indkey) and a.attname = 'tenant_id'
          ) as shared
          from pg_index i where i.indexrelid = to_regclass(quote_ident(${index}))`,
        ([row]) => row?.shared === true
      )

    /** Translates an error of the database, after its transaction. */
    const explainFailure = (error: SqlError): Effect.Effect<never, ArrivalRefused | SqlError> =>
      Effect.gen(function* () {
        if (!isOutOfOrder(error)) return yield* Effect.fail(error)
        const index = error.cause instanceof DatabaseFailure ? (error.cause.constraint ?? "") : ""
        if (sqlStateOf(error) !== "23505" || !(yield* isShared(index))) return yield* outOfOrder(index)
        return yield* new ArrivalRefused({
          reason: "conflict",
          message: `Another tenant of the destination has a value that may exist once (${index}).`
        })
      })

    /**
     * Runs `write` in a transaction whose changes the guards accept. Fails unless the tenant is away and `driver` drives
     * its move.
     */
    const writeAsDriver = <A, E, R>(tenantId: TenantId, driver: string, write: Effect.Effect<A, E, R>) =>
      sql.withTransaction(
        Effect.gen(function* () {
          if (!(yield* moves.lockWhileAway(tenantId, driver))) {
            return yield* new ArrivalRefused({
              reason: "taken",
              message: "Another command has taken over the move, or the tenant is served here already."
            })
          }
          yield* sql`select set_config('spoke.applying', ${tenantId}, true)`
          yield* withClient(RowTexts.useFixedFormats)
          return yield* write
        })
      )

    /** Fails unless the rows are stored as they were given. */
    const verifyRows = (tenantId: TenantId, table: Table, rows: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const seen = RowTexts.makeDigester()
        seen.add(rows)
        const expected = seen.digest()
        const found = yield* RowSets.digestOfRows(tenantId, table, rows)
        if (found.rows === expected.rows && found.hash === expected.hash) return
        return yield* new ArrivalRefused({
          reason: "differs",
          message: `Rows of ${table.table} are not stored as they were read.`
        })
      })

    /** Writes rows of a page. Existing ones are kept, because later changes have written them. */
    const page = Effect.fn("Arrivals.page")(function* (
      tenantId: TenantId,
      driver: string,
      table: Table,
      rows: ReadonlyArray<string>
    ) {
      if (rows.length === 0) return
      const write = Effect.zipRight(
        RowTexts.write(table, rows, "keep", tenantId),
        RowSets.raiseSequences(table, rows)
      )
      yield* Effect.catchTag(writeAsDriver(tenantId, driver, withClient(write)), "SqlError", explainFailure)
    })

    const allTogether = (tenantId: TenantId, given: ReadonlyArray<TableChanges>) =>
      Effect.gen(function* () {
        for (const { gone, table } of given.toReversed())
          if (gone.length > 0) yield* RowSets.remove(tenantId, table, gone)
        for (const { rows, table } of given)
          if (rows.length > 0) yield* RowTexts.write(table, rows, "replace", tenantId)
      })

    /** Writes each row separately, and repeats those that fail, until all are stored or no further one can be. */
    const oneByOne = (tenantId: TenantId, given: ReadonlyArray<TableChanges>) =>
      Effect.gen(function* () {
        let left = [
          ...given
            .toReversed()
            .flatMap(({ gone, table }) => gone.map((key) => RowSets.remove(tenantId, table, [key]))),
          ...given.flatMap(({ rows, table }) =>
            rows.map((row) => RowTexts.write(table, [row], "replace", tenantId))
          )
        ]
        while (left.length > 0) {
          const next = yield* Effect.filter(left, (write) =>
            sql.withTransaction(write).pipe(
              Effect.as(false),
              Effect.catchIf(isOutOfOrder, () => Effect.succeed(true))
            )
          )
          if (next.length === left.length)
            return yield* outOfOrder(given.map(({ table }) => table.table).join(", "))
          left = next
        }
      })

    /** Stores changes, in the order of the tables, all or none. */
    const changes = Effect.fn("Arrivals.changes")(function* (
      tenantId: TenantId,
      driver: string,
      given: ReadonlyArray<TableChanges>
    ) {
      const write = (how: typeof allTogether | typeof oneByOne) =>
        writeAsDriver(
          tenantId,
          driver,
          withClient(
            Effect.gen(function* () {
              yield* how(tenantId, given)
              for (const { rows, table } of given) {
                yield* verifyRows(tenantId, table, rows)
                yield* RowSets.raiseSequences(table, rows)
              }
            })
          )
        )
      yield* write(allTogether).pipe(
        Effect.catchIf(isOutOfOrder, () => write(oneByOne)),
        Effect.catchTag("SqlError", explainFailure)
      )
    })

    /** The parts that have arrived. */
    const parts = (tenantId: TenantId) =>
      sql`
        select name as "table", after, up_to as "upTo" from tenant_moves_parts where tenant = ${tenantId}`.pipe(
        Effect.flatMap(decodeParts),
        Effect.orDie,
        Effect.map((found) =>
          found.map(({ after, table, upTo }): TablePart => ({
            table,
            after: decodeKey(after),
            upTo: upTo === null ? null : decodeKey(upTo)
          }))
        )
      )

    /** Records that all rows of the part have arrived. */
    const recordArrival = (tenantId: TenantId, { after, table, upTo }: TablePart) =>
      sql`
        insert into tenant_moves_parts (tenant, name, after, up_to)
        values (${tenantId}, ${table}, ${encodeKey(after)}, ${upTo === null ? null : encodeKey(upTo)})
        on conflict (tenant, name, after) do update set up_to = excluded.up_to`.pipe(Rows.none)

    /** Deletes some rows of the table. True when there may be more. */
    const removeSome = (tenantId: TenantId, driver: string, table: Table) => {
      const key = sql.csv(table.key.map((column) => sql`${sql(column)}`))
      const owner = sql(table.owner ?? "tenant_id")
      return writeAsDriver(
        tenantId,
        driver,
        sql`
          delete from ${sql(table.table)} where (${key}) in (
            select ${key} from ${sql(table.table)} where ${owner} = ${tenantId} limit ${rowsPerRemoval}::int
          ) and ${owner} = ${tenantId} returning 1`
      ).pipe(
        Effect.catchTag("SqlError", explainFailure),
        Effect.map((rows) => rows.length === rowsPerRemoval)
      )
    }

    return { page, changes, parts, recordArrival, removeSome, writeAsDriver } as const
  })
}) {}
