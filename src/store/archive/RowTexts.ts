/**
 * Reads and writes rows as text. A row is a JSON array of the PostgreSQL text of its columns. The database itself
 * writes and reads these texts, so no value is converted by our types.
 *
 * Vectors are read and written as bytes, whether pgvector stores them or not.
 */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import type { RowDigest, RowKey } from "../../domain/accounts/TenantMove.ts"
import type { Table } from "./Tables.ts"

/** Number of rows that are read at a time. */
const batchSize = 200

/** Rows of one tenant, or all, after `after` up to `upTo`, in the order of the key. Null: no bound. */
export interface Range {
  readonly tenantId: string | null
  readonly after: RowKey | null
  readonly upTo: RowKey | null
}

/** Sets what the texts of values depend on, until the transaction ends. */
export const useFixedFormats = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    select set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true), set_config('IntervalStyle', 'postgres', true),
      set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true)`
)

const columnsOf = (sql: SqlClient.SqlClient, columns: ReadonlyArray<string>) =>
  sql.csv(columns.map((column) => sql`${sql(column)}`))

/** Columns of a row `t` that are not read as they are stored. */
const expressions: Readonly<Record<string, string>> = {
  "chunk_embeddings.encoding": "least(t.encoding, 1)",
  "chunk_embeddings.embedding": "stored_vector(t)"
}

/** The text of a row `t`. */
export const lineOf = (sql: SqlClient.SqlClient, { columns, table }: Pick<Table, "columns" | "table">) => {
  const texts = columns.map((column) => {
    const expression = expressions[`${table}.${column}`]
    return expression === undefined ? sql`t.${sql(column)}::text` : sql`(${sql.literal(expression)})::text`
  })
  return sql`json_build_array(${sql.csv(texts)})::text`
}

export const keyOf = (sql: SqlClient.SqlClient, { key }: Pick<Table, "key">) =>
  sql`array[${sql.csv(key.map((column) => sql`${sql(column)}::text`))}]`

const bound = (sql: SqlClient.SqlClient, { key, keyTypes }: Table, values: RowKey, sign: "<=" | ">") => {
  const given = sql.csv(
    key.map((_, place) => sql`${values[place] ?? ""}::${sql.literal(keyTypes[place] ?? "text")}`)
  )
  return sql`(${columnsOf(sql, key)}) ${sql.literal(sign)} (${given})`
}

/** The condition of a range. */
export const inRange = (sql: SqlClient.SqlClient, table: Table, { after, tenantId, upTo }: Range) =>
  sql.and([
    sql`true`,
    ...(tenantId === null || table.owner === null ? [] : [sql`${sql(table.owner)} = ${tenantId}`]),
    ...(after === null ? [] : [bound(sql, table, after, ">")]),
    ...(upTo === null ? [] : [bound(sql, table, upTo, "<=")])
  ])

/** The key of the row that is `rows` rows after `after`; null when there are fewer. */
export const boundary = (table: Table, range: Range, rows: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly key: RowKey }>`
        select ${keyOf(sql, table)} as key from ${sql(table.table)} t where ${inRange(sql, table, range)}
        order by ${sql.csv(table.key.map((column) => sql`t.${sql(column)}`))} offset ${rows - 1}::bigint limit 1`,
      ([row]) => row?.key ?? null
    )
  )

/** Calls `onBatch` with the rows of a range, in batches. Needs a transaction. */
export const readRange = <E, R>(
  table: Table,
  range: Range,
  onBatch: (rows: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      declare archived no scroll cursor for select ${lineOf(sql, table)} as line from ${sql(table.table)} t
      where ${inRange(sql, table, range)} order by ${columnsOf(sql, table.key)}`
    const next = sql<{ readonly line: string }>`fetch ${sql.literal(String(batchSize))} from archived`
    for (;;) {
      const rows = yield* next
      if (rows.length > 0) yield* onBatch(rows.map(({ line }) => line))
      if (rows.length < batchSize) break
    }
    yield* sql`close archived`
  })

/** The digest of what `from` selects, a fragment whose rows have a text `line`. */
export const digestOf = (sql: SqlClient.SqlClient, from: ReturnType<typeof lineOf>) =>
  Effect.map(
    sql<RowDigest>`
      select count(*)::float8 as rows, coalesce(sum(
        ('x' || left(encode(sha256(convert_to(line, 'UTF8')), 'hex'), 16))::bit(64)::bigint::numeric
      ), 0)::text as hash from (${from}) hashed`,
    ([found]): RowDigest => found ?? { rows: 0, hash: "0" }
  )

export const digestOfRange = (table: Table, range: Range) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    digestOf(
      sql,
      sql`select ${lineOf(sql, table)} as line from ${sql(table.table)} t where ${inRange(sql, table, range)}`
    )
  )

/** Computes the digest of {@link digestOf} in this process, from batches of rows. */
export const makeDigester = () => {
  let rows = 0
  let sum = 0n
  return {
    add: (lines: ReadonlyArray<string>) => {
      rows += lines.length
      for (const line of lines) sum += createHash("sha256").update(line).digest().readBigInt64BE(0)
    },
    digest: (): RowDigest => ({ rows, hash: sum.toString() })
  }
}

/** The digest of rows that have the digests `all`. */
export const sumOfDigests = (all: ReadonlyArray<RowDigest>): RowDigest => ({
  rows: all.reduce((total, { rows }) => total + rows, 0),
  hash: all.reduce((total, { hash }) => total + BigInt(hash), 0n).toString()
})

/** What to do with a row whose key exists: fail, keep the existing row, or replace it. */
type OnConflict = "fail" | "keep" | "replace"

const ownedBy = (
  sql: SqlClient.SqlClient,
  { owner }: Table,
  value: Statement.Fragment,
  tenantId: string | null
) => (tenantId === null || owner === null ? sql`true` : sql`${value} = ${tenantId}`)

const conflictOf = (sql: SqlClient.SqlClient, table: Table, on: OnConflict, tenantId: string | null) => {
  if (on === "fail") return sql``
  const { columns, counted, derived, key } = table
  // Numbers of a sequence never change, and may not be set.
  const others = columns.filter((column) => !key.includes(column) && !counted.includes(column))
  const changes = [
    ...others.map((column) => sql`${sql(column)} = excluded.${sql(column)}`),
    ...derived.map((column) => sql`${sql(column)} = null`)
  ]
  return on === "keep" || others.length === 0
    ? sql`on conflict (${columnsOf(sql, key)}) do nothing`
    : sql`on conflict (${columnsOf(sql, key)}) do update set ${sql.csv(changes)}
        where ${ownedBy(sql, table, sql`${sql(table.table)}.${sql(table.owner ?? "")}`, tenantId)}`
}

/**
 * Writes rows, given as texts in the order of the table's columns. With `tenantId`, rows of other tenants are neither
 * written nor replaced.
 */
export const write = (
  table: Table,
  rows: ReadonlyArray<string>,
  on: OnConflict = "fail",
  tenantId: string | null = null
) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const typed = table.types.map(
      (type, place) => sql`(line ->> ${sql.literal(String(place))})::${sql.literal(type)}`
    )
    const owner = sql`line ->> ${sql.literal(String(table.columns.indexOf(table.owner ?? "")))}`
    return sql`
      insert into ${sql(table.table)} (${columnsOf(sql, table.columns)}) overriding system value
      select ${sql.csv(typed)} from jsonb_array_elements(${`[${rows.join(",")}]`}::jsonb) with ordinality as given (line, place)
      where ${ownedBy(sql, table, owner, tenantId)} order by place ${conflictOf(sql, table, on, tenantId)}`
  })

/** Sets each sequence to continue after the highest number in its column. */
export const raiseSequences = (all: ReadonlyArray<Table>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const { counted, table } of all) {
      yield* Effect.forEach(
        counted,
        (column) => sql`
          select setval(pg_get_serial_sequence(quote_ident(${table}), ${column}),
            coalesce(max(${sql(column)}), 1), max(${sql(column)}) is not null) from ${sql(table)}`,
        { discard: true }
      )
    }
  })
