/**
 * The tables whose rows are exported or moved, from the catalogue, so that a new table needs no code here.
 *
 * Not included: derived data (tables of pgvector, ids of master secrets), data that may be lost (unlogged tables), the
 * lists of migrations, and the state of moves.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TableShape } from "../../domain/accounts/TenantMove.ts"

/** The tables cannot be sorted by their references, or the target database does not have the form of the archive. */
export class ArchiveMismatch extends Schema.TaggedError<ArchiveMismatch>()("ArchiveMismatch", {
  message: Schema.String
}) {}

export interface Table extends TableShape {
  /** Columns that identify a row and order the rows, and their SQL types. With a tenant, it is the first of them. */
  readonly key: ReadonlyArray<string>
  readonly keyTypes: ReadonlyArray<string>
  /** The column with the tenant's id; null when the table has none. */
  readonly owner: string | null
  /** Tables that it refers to. */
  readonly needs: ReadonlyArray<string>
  /** Columns with a sequence. */
  readonly counted: ReadonlyArray<string>
  /** Columns that are not read, and empty in rows that are written: how pgvector stores a vector. */
  readonly derived: ReadonlyArray<string>
  /** The purpose under which the values of each column are sealed; null if they are not sealed. */
  readonly sealed: ReadonlyArray<string | null>
}

const readTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Table>`
    select c.relname as "table",
      array_agg(a.attname::text order by a.attnum) as columns,
      array_agg(format_type(a.atttypid, a.atttypmod) order by a.attnum) as types,
      coalesce(key.columns, '{}') as key, coalesce(key.types, '{}') as "keyTypes",
      array_agg(substring(col_description(c.oid, a.attnum) from '^sealed: (.+)$') order by a.attnum) as sealed,
      case when c.relname = 'tenants' then 'id' when 'tenant_id' = any(array_agg(a.attname::text)) then 'tenant_id' end as owner,
      coalesce(array_agg(a.attname::text) filter (where a.attidentity <> ''), '{}') as counted,
      array(select d.attname::text from pg_attribute d where d.attrelid = c.oid and not d.attisdropped
        and c.relname = 'chunk_embeddings' and d.attname in ('vector', 'source_id') order by 1) as derived,
      array(select distinct r.relname::text from pg_constraint k join pg_class r on r.oid = k.confrelid
        where k.contype = 'f' and k.conrelid = c.oid and k.conparentid = 0 order by 1) as needs
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = current_schema()
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    left join lateral (
      select array_agg(k.attname::text order by place) as columns,
        array_agg(format_type(k.atttypid, k.atttypmod) order by place) as types
      from pg_index i cross join lateral unnest(i.indkey::int2[]) with ordinality as u (number, place)
      join pg_attribute k on k.attrelid = c.oid and k.attnum = u.number
      where i.indrelid = c.oid and i.indisunique and i.indimmediate and i.indpred is null and i.indexprs is null
      group by i.indexrelid, i.indisprimary having bool_and(k.attnotnull)
      order by (array_agg(k.attname order by place))[1] = 'tenant_id' desc, i.indisprimary desc, i.indexrelid limit 1
    ) key on true
    where c.relkind in ('r', 'p') and c.relpersistence = 'p' and not c.relispartition
      and c.relname not like 'migrations%' and c.relname not like 'chunk_vectors_%' and c.relname not like 'tenant_moves%'
      and c.relname not in ('vector_profiles', 'retrieval_recall', 'master_keys', 'passage_sweep')
      and not (c.relname = 'chunk_embeddings' and a.attname in ('vector', 'source_id'))
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    group by c.oid, c.relname, key.columns, key.types
    order by c.relname`
})

/** Sorts tables so that each comes after the tables that it refers to. */
const inOrder = (tables: ReadonlyArray<Table>): Effect.Effect<ReadonlyArray<Table>, ArchiveMismatch> =>
  Effect.suspend(() => {
    const names = new Set(tables.map(({ table }) => table))
    const done = new Set<string>()
    const ordered: Array<Table> = []
    while (ordered.length < tables.length) {
      const next = tables.filter(
        ({ needs, table }) => !done.has(table) && needs.every((name) => done.has(name) || !names.has(name))
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

/** Fails if a table has no key, by which its rows are paged and changes of them identified. */
const requireKeys = (tables: ReadonlyArray<Table>) =>
  Effect.forEach(tables, (each) =>
    each.key.length > 0
      ? Effect.succeed(each)
      : new ArchiveMismatch({ message: `The table ${each.table} has no key.` })
  )

/** Every table, each after those it refers to. */
export const tables = readTables.pipe(Effect.flatMap(requireKeys), Effect.flatMap(inOrder))

/** The table without sealed columns. Rows are compared without them, because each installation seals for itself. */
export const withoutSealed = (table: Table): Table => {
  const isOpen = (_: unknown, place: number) => table.sealed[place] === null
  return {
    ...table,
    columns: table.columns.filter(isOpen),
    types: table.types.filter(isOpen),
    sealed: table.sealed.filter(isOpen)
  }
}

/** Every table with rows of one tenant, each after those it refers to. */
export const ofTenants = Effect.map(tables, (all) => all.filter(({ owner }) => owner !== null))

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

const shapeOf = ({ columns, types }: TableShape) =>
  columns.map((column, place) => `${column} ${types[place] ?? ""}`).toSorted()

/** The table with its columns in the order of `shape`. */
const inOrderOf = (here: Table, { columns, types }: TableShape): Table => ({
  ...here,
  columns,
  types,
  sealed: columns.map((column) => here.sealed[here.columns.indexOf(column)] ?? null)
})

/** The table here that has the columns of `shape`. Fails when there is none, or one whose columns differ. */
export const matching = (known: ReadonlyArray<Table>, shape: TableShape) => {
  const here = known.find(({ table }) => table === shape.table)
  return here !== undefined && shapeOf(here).join() === shapeOf(shape).join()
    ? Effect.succeed(inOrderOf(here, shape))
    : new ArchiveMismatch({ message: `The table ${shape.table} of the archive is not one of this version.` })
}
