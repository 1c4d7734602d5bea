/**
 * Rows of a tenant's tables by their keys. Keys are lists of texts, as the guards record them. Not every key contains
 * the tenant, so each statement names it.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { RowKey } from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import { digestOf, lineOf } from "../archive/RowTexts.ts"
import type { Table } from "../archive/Tables.ts"
import { toJsonb } from "../Jsonb.ts"

/** Keys in a JSON array, and where in each of its elements the columns of the key are. */
interface KeySet {
  readonly json: string
  readonly places: ReadonlyArray<number>
}

const givenKeySet = ({ key }: Table, keys: ReadonlyArray<RowKey>): KeySet => ({
  json: toJsonb(keys),
  places: key.map((_, place) => place)
})

/** The keys of rows. */
const keySetOfRows = ({ columns, key }: Table, rows: ReadonlyArray<string>): KeySet => ({
  json: `[${rows.join(",")}]`,
  places: key.map((column) => columns.indexOf(column))
})

/** The keys as rows of `given`, with the types of the columns. */
const givenKeys = (sql: SqlClient.SqlClient, { key, keyTypes }: Table, { json, places }: KeySet) => {
  const typed = key.map(
    (column, place) =>
      sql`(one ->> ${sql.literal(String(places[place]))})::${sql.literal(keyTypes[place] ?? "text")} as ${sql(column)}`
  )
  return sql`(
    select nth_given, ${sql.csv(typed)} from jsonb_array_elements(${json}::jsonb) with ordinality as listed (one, nth_given)
  ) given`
}

const keyColumns = (sql: SqlClient.SqlClient, { key }: Table, of: "given" | "t") =>
  sql.csv(key.map((column) => sql`${sql.literal(of)}.${sql(column)}`))

const rowsWithKeys = (sql: SqlClient.SqlClient, table: Table, keys: KeySet) =>
  sql`(${keyColumns(sql, table, "t")}) in (select ${keyColumns(sql, table, "given")} from ${givenKeys(sql, table, keys)})`

const ownedBy = (sql: SqlClient.SqlClient, { owner }: Table, tenantId: TenantId) =>
  sql`t.${sql(owner ?? "tenant_id")} = ${tenantId}`

/**
 * The rows with these keys (`rows`), until their texts have more than `characters`; the keys without a row (`gone`);
 * and the keys of the remaining rows (`left`).
 */
export const rowsOf = (tenantId: TenantId, table: Table, keys: ReadonlyArray<RowKey>, characters: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly place: number; readonly there: boolean; readonly line: string | null }>`
        select place, line is not null as there, case when total - length(line) < ${characters}::int then line end as line
        from (
          select place, line, sum(length(line)) over (order by place) as total from (
            select given.nth_given::int as place, (
              select ${lineOf(sql, table)} from ${sql(table.table)} t
              where (${keyColumns(sql, table, "t")}) = (${keyColumns(sql, table, "given")}) and ${ownedBy(sql, table, tenantId)}
            ) as line from ${givenKeys(sql, table, givenKeySet(table, keys))}
          ) read
        ) sized order by place`,
      (found) => {
        const keysOf = (some: typeof found) => some.flatMap(({ place }) => keys.slice(place - 1, place))
        return {
          rows: found.flatMap(({ line }) => (line === null ? [] : [line])),
          gone: keysOf(found.filter(({ there }) => !there)),
          left: keysOf(found.filter(({ line, there }) => there && line === null))
        }
      }
    )
  )

/** Deletes the rows with these keys. */
export const remove = (tenantId: TenantId, table: Table, keys: ReadonlyArray<RowKey>) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      delete from ${sql(table.table)} t
      where ${ownedBy(sql, table, tenantId)} and ${rowsWithKeys(sql, table, givenKeySet(table, keys))}`
  )

const digestOfSet = (tenantId: TenantId, table: Table, keys: KeySet) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    digestOf(
      sql,
      sql`select ${lineOf(sql, table)} as line from ${sql(table.table)} t
        where ${ownedBy(sql, table, tenantId)} and ${rowsWithKeys(sql, table, keys)}`
    )
  )

/** The digest of the stored rows with these keys. */
export const digestOfKeys = (tenantId: TenantId, table: Table, keys: ReadonlyArray<RowKey>) =>
  digestOfSet(tenantId, table, givenKeySet(table, keys))

/** The digest of the stored rows that have the keys of the given ones. */
export const digestOfRows = (tenantId: TenantId, table: Table, rows: ReadonlyArray<string>) =>
  digestOfSet(tenantId, table, keySetOfRows(table, rows))

/** Sets the table's sequences to continue after the numbers of these rows. */
export const raiseSequences = (table: Table, rows: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.forEach(
      table.counted,
      (column) => sql`
        with given as (
          select max((line ->> ${sql.literal(String(table.columns.indexOf(column)))})::bigint) as highest
          from jsonb_array_elements(${`[${rows.join(",")}]`}::jsonb) as listed (line)
        ), named as (select pg_get_serial_sequence(quote_ident(${table.table}), ${column}) as name)
        select setval(named.name, given.highest) from given, named
        where given.highest > coalesce(pg_sequence_last_value(named.name::regclass), 0)`,
      { discard: true }
    )
  )

/** Those of `keys` that are not among `others`. Compares values, because the same value may have different texts. */
export const without = (table: Table, keys: ReadonlyArray<RowKey>, others: ReadonlyArray<RowKey>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    others.length === 0
      ? Effect.succeed(keys)
      : Effect.map(
          sql<{ readonly place: number }>`
            select t.nth_given::int as place from (select * from ${givenKeys(sql, table, givenKeySet(table, keys))}) t
            where not ${rowsWithKeys(sql, table, givenKeySet(table, others))} order by t.nth_given`,
          (found) => found.flatMap(({ place }) => keys.slice(place - 1, place))
        )
  )

/** The number of the tenant's rows that have none of these keys. */
export const countWithout = (tenantId: TenantId, table: Table, keys: ReadonlyArray<RowKey>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly rows: number }>`
        select count(*)::float8 as rows from ${sql(table.table)} t
        where ${ownedBy(sql, table, tenantId)} ${keys.length === 0 ? sql`` : sql`and not ${rowsWithKeys(sql, table, givenKeySet(table, keys))}`}`,
      ([row]) => row?.rows ?? 0
    )
  )
