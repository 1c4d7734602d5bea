/** Reads the rows of a tenant that is moved away, while it is served here. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { TenantId } from "../../domain/Ids.ts"
import type { ChangedRows, ChangeSet, RowKey } from "../../domain/accounts/TenantMove.ts"
import * as RowTexts from "../archive/RowTexts.ts"
import { type Table, withoutSealed } from "../archive/Tables.ts"
import * as RowSets from "./RowSets.ts"
import { refsIn } from "../knowledge/ArtifactRows.ts"
import * as Rows from "../Rows.ts"

/** Maximum rows of a page, and about the maximum characters of its rows. */
const pageRows = 500
const pageCharacters = 2 * 1_048_576
/** A request for changes gets a page of characters for each {@link changesPerPage}, at most {@link maxPages}. */
const changesPerPage = 500
const maxPages = 4
/** In milliseconds. Counting the rows of a large table takes longer than other statements may take. */
const countTimeout = "110000"

const keyText = (table: string, key: RowKey) => [table, ...key].join("\u0000")

const distinct = (keys: ReadonlyArray<RowKey>): ReadonlyArray<RowKey> => [
  ...new Map(keys.map((key) => [key.join("\u0000"), key])).values()
]

export class Departures extends Effect.Service<Departures>()("store/moves/Departures", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** All statements of `read` see one state of the database. */
    const inSnapshot = <A, E, R>(read: Effect.Effect<A, E, R>) =>
      sql
        .withTransaction(
          Effect.zipRight(
            sql`set transaction isolation level repeatable read`,
            Effect.zipRight(RowTexts.useFixedFormats, read)
          )
        )
        .pipe(Effect.provideService(SqlClient.SqlClient, sql), Effect.orDie)

    const changedKeys = (tenantId: TenantId, { table }: Table) =>
      Effect.map(
        sql<{ readonly key: RowKey }>`
          select distinct key from tenant_moves_changes where tenant = ${tenantId} and name = ${table}`,
        (found) => found.map(({ key }) => key)
      )

    /** Names of the tables that have rows of the tenant. */
    const filledTables = (tenantId: TenantId, tables: ReadonlyArray<Table>) => {
      const each = tables.map(
        ({ owner, table }) => sql`
          select ${table}::text as name where exists (
            select from ${sql(table)} where ${sql(owner ?? "tenant_id")} = ${tenantId})`
      )
      const all = each.reduce((some, one) => sql`${some} union all ${one}`)
      return Effect.map(Effect.orDie(sql<{ readonly name: string }>`${all}`), (found) =>
        found.map(({ name }) => name)
      )
    }

    /** The end of a part that begins after `after`; null when it is the last one. */
    const boundary = (tenantId: TenantId, table: Table, after: RowKey | null, rows: number) =>
      inSnapshot(RowTexts.boundary(table, { tenantId, after, upTo: null }, rows))

    const pageOf = (tenantId: TenantId, table: Table, range: Omit<RowTexts.Range, "tenantId">) =>
      Effect.gen(function* () {
        const order = sql.csv(table.key.map((column) => sql`t.${sql(column)}`))
        const found = yield* sql<{ readonly line: string; readonly key: RowKey; readonly more: boolean }>`
            select line, key, nth = ${pageRows}::int or total > ${pageCharacters}::int as more from (
              select line, key, nth, sum(length(line)) over (order by nth) as total from (
                select ${RowTexts.lineOf(sql, table)} as line, ${RowTexts.keyOf(sql, table)} as key, row_number() over (order by ${order}) as nth
                from ${sql(table.table)} t where ${RowTexts.inRange(sql, table, { ...range, tenantId })} order by ${order} limit ${pageRows}::int
              ) read
            ) sized where nth = 1 or total - length(line) <= ${pageCharacters}::int order by nth`
        const last = found.at(-1)
        return {
          rows: found.map(({ line }) => line),
          next: last?.more === true ? last.key : null
        }
      })

    /** Originals that the rows name. */
    const refsOf = (tables: ReadonlyArray<Table>, changes: ReadonlyArray<ChangedRows>) => {
      const valuesOf = (name: string, column: string) => {
        const place = tables.find(({ table }) => table === name)?.columns.indexOf(column) ?? -1
        const rows = changes.flatMap(({ rows, table }) => (table === name ? rows : []))
        return sql`select line ->> ${sql.literal(String(place))} as value from jsonb_array_elements(${`[${rows.join(",")}]`}::jsonb) as l (line)`
      }
      return Effect.flatMap(
        sql`
          select distinct ref from (
            select value::jsonb ->> 'artifact' as ref from (${valuesOf("sources", "config")}) s
            union all select value from (${valuesOf("conversation_artifacts", "ref")}) c
          ) named where ref is not null`,
        refsIn
      )
    }

    /**
     * The oldest changes of rows of `tables`, at most `limit`, with the rows as they are now. If not all rows fit,
     * those of later tables are left out, so that the rows that they refer to come first.
     */
    const changesOf = (tenantId: TenantId, tables: ReadonlyArray<Table>, limit: number) =>
      Effect.gen(function* () {
        const recorded = yield* sql<{ readonly seq: string; readonly name: string; readonly key: RowKey }>`
            select seq::text as seq, name, key from tenant_moves_changes c
            where tenant = ${tenantId} and name = any(${tables.map(({ table }) => table)}::text[])
            order by c.seq limit ${limit}::int`
        let characters = pageCharacters * Math.min(maxPages, Math.max(1, limit / changesPerPage))
        const left = new Set<string>()
        const changes: Array<ChangedRows> = []
        for (const table of tables) {
          const keys = distinct(recorded.flatMap(({ key, name }) => (name === table.table ? [key] : [])))
          if (keys.length === 0) continue
          const found = yield* RowSets.rowsOf(tenantId, table, keys, Math.max(0, characters))
          changes.push({ table: table.table, rows: found.rows, gone: found.gone })
          for (const key of found.left) left.add(keyText(table.table, key))
          characters -= found.rows.reduce((total, row) => total + row.length, 0)
        }
        const result: ChangeSet = {
          seqs: recorded.flatMap(({ key, name, seq }) => (left.has(keyText(name, key)) ? [] : [seq])),
          more: left.size > 0,
          changes,
          refs: yield* refsOf(tables, changes)
        }
        return result
      })

    const page = (tenantId: TenantId, table: Table, range: Omit<RowTexts.Range, "tenantId">) =>
      inSnapshot(pageOf(tenantId, table, range))

    const changes = (tenantId: TenantId, tables: ReadonlyArray<Table>, limit: number) =>
      inSnapshot(changesOf(tenantId, tables, limit))

    /** A page with the changes of `tables`. What its rows refer to has arrived before, or is among the changes. */
    const pageWithChanges = (
      tenantId: TenantId,
      table: Table,
      range: Omit<RowTexts.Range, "tenantId">,
      tables: ReadonlyArray<Table>,
      limit: number
    ) =>
      inSnapshot(
        Effect.all({ page: pageOf(tenantId, table, range), changes: changesOf(tenantId, tables, limit) })
      )

    /** Deletes changes that the other side has stored. */
    const acknowledge = (tenantId: TenantId, seqs: ReadonlyArray<string>) =>
      sql`
        delete from tenant_moves_changes where tenant = ${tenantId} and seq = any(${seqs}::bigint[])`.pipe(
        Rows.none
      )

    /** The next rows to compare. */
    const sample = (tenantId: TenantId, whole: Table, after: RowKey | null, rows: number) =>
      inSnapshot(
        Effect.gen(function* () {
          const table = withoutSealed(whole)
          const order = sql.csv(table.key.map((column) => sql`t.${sql(column)}`))
          const found = yield* sql<{ readonly key: RowKey }>`
            select ${RowTexts.keyOf(sql, table)} as key from ${sql(table.table)} t
            where ${RowTexts.inRange(sql, table, { tenantId, after, upTo: null })} order by ${order} limit ${rows}::int`
          const left = yield* RowSets.without(
            table,
            found.map(({ key }) => key),
            yield* changedKeys(tenantId, table)
          )
          const last = found.at(-1)
          return {
            keys: left,
            digest: yield* RowSets.digestOfKeys(tenantId, table, left),
            next: found.length === rows && last !== undefined ? last.key : null
          }
        })
      )

    /** The digest of the rows with these keys. */
    const digest = (tenantId: TenantId, table: Table, keys: ReadonlyArray<RowKey>) =>
      inSnapshot(RowSets.digestOfKeys(tenantId, withoutSealed(table), keys))

    /** The number of rows without those with changes left to copy, or without the given ones; and the keys of these. */
    const count = (tenantId: TenantId, table: Table, given: ReadonlyArray<RowKey> | null) =>
      inSnapshot(
        Effect.gen(function* () {
          yield* sql`select set_config('statement_timeout', ${countTimeout}, true)`
          const keys = given ?? (yield* changedKeys(tenantId, table))
          return { rows: yield* RowSets.countWithout(tenantId, table, keys), changing: keys }
        })
      )

    return {
      filledTables,
      boundary,
      page,
      changes,
      pageWithChanges,
      acknowledge,
      sample,
      digest,
      count
    } as const
  })
}) {}
