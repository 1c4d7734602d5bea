/**
 * Reads and writes every row of the database as text, on both engines. A row is a JSON array of the PostgreSQL text of
 * its columns. The database itself writes and reads these texts, so no value is converted by our types.
 *
 * Vectors are written as bytes, whether pgvector stores them or not.
 *
 * Not included: derived data (tables of pgvector, ids of master secrets), data that may be lost (unlogged tables) and
 * the lists of migrations.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The tables cannot be sorted by their references, or the target database does not have the form of the archive. */
export class ArchiveMismatch extends Schema.TaggedError<ArchiveMismatch>()("ArchiveMismatch", {
  message: Schema.String
}) {}

export const Table = Schema.Struct({ table: Schema.String, columns: Schema.Array(Schema.String) })
export type Table = typeof Table.Type

/** Number of rows that are read or written at a time. */
const batch = 200

interface Described extends Table {
  /** SQL types, in the order of the columns. */
  readonly types: ReadonlyArray<string>
  readonly needs: ReadonlyArray<string>
  /** Columns with a sequence. */
  readonly counted: ReadonlyArray<string>
}

const described = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Described>`
    select c.relname as "table",
      array_agg(a.attname::text order by a.attnum) as columns,
      array_agg(format_type(a.atttypid, a.atttypmod) order by a.attnum) as types,
      coalesce(array_agg(a.attname::text) filter (where a.attidentity <> ''), '{}') as counted,
      array(select distinct r.relname::text from pg_constraint k join pg_class r on r.oid = k.confrelid
        where k.contype = 'f' and k.conrelid = c.oid order by 1) as needs
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = current_schema()
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    where c.relkind in ('r', 'p') and c.relpersistence = 'p' and not c.relispartition
      and c.relname not like 'migrations%' and c.relname not like 'chunk_vectors_%'
      and c.relname not in ('vector_profiles', 'retrieval_recall', 'master_keys', 'passage_sweep')
      and not (c.relname = 'chunk_embeddings' and a.attname in ('vector', 'source_id'))
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    group by c.oid, c.relname
    order by c.relname`
})

/** Sorts tables so that each comes after those it refers to. */
const inOrder = (
  tables: ReadonlyArray<Described>
): Effect.Effect<ReadonlyArray<Described>, ArchiveMismatch> =>
  Effect.suspend(() => {
    const done = new Set<string>()
    const ordered: Array<Described> = []
    while (ordered.length < tables.length) {
      const next = tables.filter(
        ({ needs, table }) => !done.has(table) && needs.every((name) => done.has(name))
      )
      if (next.length === 0)
        return new ArchiveMismatch({ message: "The tables refer to each other in a circle." })
      for (const each of next) {
        done.add(each.table)
        ordered.push(each)
      }
    }
    return Effect.succeed(ordered)
  })

/** Every table, each after those it refers to. */
export const tables = Effect.flatMap(described, inOrder)

/** The migrations that made the database, in order. */
export const migrationsApplied = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly name: string }>`select name from migrations order by migration_id`
  return rows.map(({ name }) => name)
})

/** Names of tables that have rows. */
export const nonEmptyTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* Effect.filter(yield* tables, ({ table }) =>
    Effect.map(
      sql<{ readonly some: boolean }>`select exists (select from ${sql(table)}) as some`,
      ([row]) => row?.some === true
    )
  )
  return found.map(({ table }) => table)
})

/** Runs `inside` on a consistent snapshot of the database. */
export const snapshot = <A, E, R>(inside: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(
      Effect.zipRight(sql`set transaction isolation level repeatable read, read only`, inside)
    )
  )

/** Columns that are not read as they are stored. */
const expressions: Readonly<Record<string, string>> = {
  "chunk_embeddings.encoding": "least(encoding, 1)",
  "chunk_embeddings.embedding": "stored_vector(chunk_embeddings)"
}

/** Passes the rows of a table on in batches, and counts them. Needs a transaction. */
export const readTable = <E, R>(
  { columns, table }: Table,
  take: (rows: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const texts = sql.csv(
      columns.map((column) => {
        const expression = expressions[`${table}.${column}`]
        return expression === undefined ? sql`${sql(column)}::text` : sql`(${sql.literal(expression)})::text`
      })
    )
    yield* sql`declare archived no scroll cursor for select json_build_array(${texts})::text as line from ${sql(table)}`
    const next = sql<{ readonly line: string }>`fetch ${sql.literal(String(batch))} from archived`
    let count = 0
    for (;;) {
      const rows = yield* next
      if (rows.length > 0) yield* take(rows.map(({ line }) => line))
      count += rows.length
      if (rows.length < batch) break
    }
    yield* sql`close archived`
    return count
  })

/** The tables by name, as {@link writerOf} needs them. */
export const shape = Effect.map(tables, (all) => new Map(all.map((each) => [each.table, each])))

/** Refuses a table or a column that does not exist, and a column that would stay empty. */
export const requireMatchingTable = (known: ReadonlyMap<string, Table>, { columns, table }: Table) => {
  const here = known.get(table)
  return here !== undefined && here.columns.toSorted().join() === columns.toSorted().join()
    ? Effect.void
    : new ArchiveMismatch({ message: `The table ${table} of the archive is not one of this version.` })
}

/** Writes rows into a table, in the order of its columns in the archive. */
export const writerOf = (known: ReadonlyMap<string, Described>, { columns, table }: Table) =>
  Effect.map(SqlClient.SqlClient, (sql) => {
    const here = known.get(table)
    const typed = columns.map((column, index) => {
      const type = here?.types[here.columns.indexOf(column)] ?? "text"
      return sql`(line ->> ${sql.literal(String(index))})::${sql.literal(type)}`
    })
    const into = sql`insert into ${sql(table)} (${sql.csv(columns.map((column) => sql`${sql(column)}`))})`
    return (rows: ReadonlyArray<string>) =>
      sql`${into} overriding system value
        select ${sql.csv(typed)} from jsonb_array_elements(${`[${rows.join(",")}]`}::jsonb) with ordinality as given (line, place)
        order by place`
  })

/** Sets each sequence to the highest number in its column. */
export const resetSequences = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const { counted, table } of yield* tables) {
    yield* Effect.forEach(
      counted,
      (column) => sql`
        select setval(pg_get_serial_sequence(quote_ident(${table}), ${column}),
          coalesce(max(${sql(column)}), 1), max(${sql(column)}) is not null) from ${sql(table)}`,
      { discard: true }
    )
  }
})
