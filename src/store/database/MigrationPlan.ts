/** The locks of pending migrations, and their estimated duration. Changes nothing. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { pendingFiles } from "./Migrations.ts"
import { effectsOf, type LockMode, type TableEffect, unnamed, type Work } from "./StatementEffects.ts"
import { statementsOf } from "./SqlText.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"

/** Operations of other sessions on the table that are blocked. */
type Blocks = "nothing" | "writes" | "reads and writes" | "unknown"

export interface PlannedLock {
  /** Null if the statement has an unknown form. */
  readonly table: string | null
  readonly lock: LockMode | null
  readonly blocks: Blocks
  readonly work: Work
  /** The server's estimate; null if it has none yet. */
  readonly rows: number | null
  /** Estimated duration, from the table's size and slow disks; null if unknown. */
  readonly seconds: number | null
}

export interface PlannedStatement {
  /** The beginning of the statement. */
  readonly statement: string
  /** False if the plan does not know this form of statement. */
  readonly known: boolean
  /** Locks on existing tables. New tables are not in use yet. */
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

/** Bytes per second, of a server under load. */
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

const plannedOf = ({ lock, work }: TableEffect, size: Size): PlannedLock => ({
  table: size.name,
  lock,
  blocks: lock === null ? "unknown" : blocks[lock],
  work,
  rows: size.rows,
  seconds: secondsOf(work, size)
})

const planStatement = (statement: string) =>
  Effect.gen(function* () {
    const effects = effectsOf(statement)
    const locks = yield* Effect.forEach(effects, (effect) =>
      Effect.map(effect.table === unnamed ? Effect.succeed(null) : sizeOf(effect.table), (size) =>
        // A table that does not exist yet is created by an earlier migration.
        size === null ? [] : [plannedOf(effect, size)]
      )
    )
    const text = statement.replaceAll(/\s+/gu, " ")
    const known = effects.every(({ work }) => work !== "unknown")
    const found: PlannedStatement = {
      statement: text.length > 120 ? `${text.slice(0, 119)}…` : text,
      known,
      locks: locks.flat()
    }
    return found
  })

/** The pending files of `directory`, and the effect of their statements on existing tables. */
export const plan = (directory: string, table = "migrations") =>
  Effect.gen(function* () {
    const files = yield* pendingFiles(directory, table)
    return yield* Effect.forEach(files, ({ file, text, transaction }) =>
      Effect.map(Effect.forEach(statementsOf(text), planStatement), (statements): PlannedFile => ({
        file,
        transaction,
        statements
      }))
    )
  }).pipe(forEveryTenant("migration"), Effect.withSpan("Database.planMigrations"))
