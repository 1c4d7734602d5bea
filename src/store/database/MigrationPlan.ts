/** The locks of pending migrations, and their estimated duration. Changes nothing. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { pendingFiles } from "./Migrations.ts"
import {
  type Effect as TableEffect,
  effectsOf,
  type LockMode,
  unnamed,
  type Work
} from "./StatementEffects.ts"
import { statementsOf } from "./SqlText.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"

/** What other sessions cannot do on the table meanwhile. */
type Blocks = "nothing" | "writes" | "reads and writes" | "unknown"

export interface PlannedLock {
  /** Null where the statement does not name it in a form that is known. */
  readonly table: string | null
  readonly lock: LockMode | null
  readonly blocks: Blocks
  readonly work: Work
  /** As the server estimates them; null where it has not looked yet. */
  readonly rows: number | null
  /** Estimated duration, by the table's size and slow disks; null where it is unknown. */
  readonly seconds: number | null
}

export interface PlannedStatement {
  /** Its beginning. */
  readonly statement: string
  /** False where the form of the statement is none that the plan knows. */
  readonly known: boolean
  /** Tables that are there already; those that the migrations create are not in use yet. */
  readonly locks: ReadonlyArray<PlannedLock>
}

export interface PlannedFile {
  readonly file: string
  readonly transaction: boolean
  readonly statements: ReadonlyArray<PlannedStatement>
}

interface Size {
  readonly name: string
  readonly rows: number | null
  readonly bytes: number
}

const blocks: Readonly<Record<LockMode, Blocks>> = {
  "ROW EXCLUSIVE": "nothing",
  "SHARE UPDATE EXCLUSIVE": "nothing",
  SHARE: "writes",
  "SHARE ROW EXCLUSIVE": "writes",
  "ACCESS EXCLUSIVE": "reads and writes"
}

/** Bytes a second, of a server that has other work too. */
const speeds: Readonly<Record<Exclude<Work, "catalogue" | "added" | "unknown">, number>> = {
  scan: 100e6,
  index: 30e6,
  rewrite: 20e6,
  changed: 10e6
}

const secondsOf = (work: Work, { bytes }: Size): number | null => {
  if (work === "unknown" || work === "added") return null
  return work === "catalogue" ? 0 : Math.ceil(bytes / speeds[work])
}

const sizeOf = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<Size>`
      select relname as name, nullif(reltuples, -1)::float8 as rows, pg_table_size(oid)::float8 as bytes from pg_class
      where oid = coalesce((select indrelid from pg_index where indexrelid = to_regclass(${table})), to_regclass(${table}))`
    return found ?? null
  })

const plannedOf = ({ lock, work }: TableEffect, size: Size | null): PlannedLock => ({
  table: size?.name ?? null,
  lock,
  blocks: lock === null ? "unknown" : blocks[lock],
  work,
  rows: size?.rows ?? null,
  seconds: size === null ? null : secondsOf(work, size)
})

const planned = (statement: string) =>
  Effect.gen(function* () {
    const effects = effectsOf(statement)
    const locks: Array<PlannedLock> = []
    for (const effect of effects) {
      const size = effect.table === unnamed ? null : yield* sizeOf(effect.table)
      // What is not there yet is made by a migration before it.
      if (size !== null || effect.table === unnamed) locks.push(plannedOf(effect, size))
    }
    const text = statement.replaceAll(/\s+/gu, " ")
    const known = effects.every(({ work }) => work !== "unknown")
    const found: PlannedStatement = {
      statement: text.length > 120 ? `${text.slice(0, 119)}…` : text,
      known,
      locks: locks.filter(({ table }) => table !== null)
    }
    return found
  })

/** The files of `directory` that wait, and what each of their statements does to tables that are there. */
export const plan = (directory: string, table = "migrations") =>
  Effect.gen(function* () {
    const files = yield* pendingFiles(directory, table)
    return yield* Effect.forEach(files, ({ file, text, transaction }) =>
      Effect.map(Effect.forEach(statementsOf(text), planned), (statements): PlannedFile => ({
        file,
        transaction,
        statements
      }))
    )
  }).pipe(forEveryTenant("migration"), Effect.withSpan("Database.planMigrations"))
