import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { layerPostgres, migrate } from "../../../src/store/Database.ts"
import { eachEngineLive, migrations, serverUrl } from "../../TestDatabase.ts"

/** A folder with these files. */
const folder = (files: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-migrations-"))
      for (const [name, text] of Object.entries(files)) Fs.writeFileSync(Path.join(directory, name), text)
      return directory
    }),
    (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
  )

/** Names of our migrations, without subfolders, which are of other databases. */
const names = Fs.readdirSync(migrations).filter((name) => name.endsWith(".sql"))

/** Our migrations, and additional files to test. */
const ours = (more: Record<string, string>) =>
  Object.fromEntries([
    ...names.map((name): [string, string] => [name, Fs.readFileSync(Path.join(migrations, name), "utf8")]),
    ...Object.entries(more)
  ])

const next = (offset: number, name: string) => `${String(names.length + offset).padStart(4, "0")}_${name}.sql`

const latest = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ id: number }>`select max(migration_id) as id from migrations`
)

eachEngineLive("Migrations", (it, engine) => {
  it.scoped("are applied once", () =>
    Effect.gen(function* () {
      expect(yield* migrate(migrations)).toEqual([])
      expect(yield* latest).toEqual([{ id: names.length }])
    })
  )

  it.scoped("with skipped or repeated numbers or invalid names are refused before anything changes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const files of [
        { [next(2, "skipped")]: "create table skipped ()" },
        { [next(0, "twice")]: "create table skipped ()" },
        { "nine.sql": "create table skipped ()" }
      ]) {
        const error = yield* Effect.flip(migrate(yield* folder(ours(files))))
        expect(error._tag).toBe("MigrationError")
      }
      expect(yield* sql`select to_regclass('skipped') is null as none`).toEqual([{ none: true }])
    })
  )

  it.scoped("that fail undo all pending ones, and name the one that failed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const before = yield* latest
      const files = {
        [next(1, "good")]: "create table pending (); create table pending_too ()",
        [next(2, "bad")]: "create table broken (id no_such_type)"
      }
      const error = yield* Effect.flip(migrate(yield* folder(ours(files))))
      expect(error._tag).toBe("MigrationError")
      expect(error.message).toContain("bad")
      expect(yield* latest).toEqual(before)
      expect(yield* sql`select to_regclass('pending') is null as none`).toEqual([{ none: true }])
    })
  )

  it.scoped("of another version of the program are refused", () =>
    Effect.gen(function* () {
      const fewer = ours({})
      delete fewer[names.toSorted().at(-1) ?? ""]
      const error = yield* Effect.flip(migrate(yield* folder(fewer)))
      expect(error.message).toContain("does not know")
    })
  )

  it.scoped("from before 0.1.0 are refused, with a remedy", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const table = "migrations_before"
      // As development versions made it: some had no checksums yet.
      yield* sql.unsafe(`create table ${table} (migration_id int primary key, name text not null)`)
      yield* sql.unsafe(`insert into ${table} values (1, 'tenancy'), (2, 'queue')`)
      const error = yield* Effect.flip(migrate(migrations, { table }))
      expect(error).toMatchObject({ _tag: "MigrationError", reason: "state" })
      expect(error.message).toContain("from before 0.1.0")
      expect(error.message).toContain("SPOKE_DATA_DIR")
      yield* sql.unsafe(`drop table ${table}`)
    })
  )

  if (engine === "server") {
    it.scoped("of two processes that start on an empty database at the same time both succeed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        for (let round = 0; round < 3; round++) {
          yield* sql`drop database if exists empty`
          yield* sql`create database empty`
          const url = Redacted.make(Redacted.value(yield* serverUrl).replace(/postgres$/, "empty"))
          // A layer of its own for each, or they would share one.
          const start = Effect.suspend(() =>
            Effect.provide(migrate(migrations), Layer.fresh(layerPostgres({ url, maxConnections: 2 })))
          )
          const applied = yield* Effect.all([start, start], { concurrency: "unbounded" })
          expect(applied.flat()).toHaveLength(names.length)
        }
        yield* sql`drop database empty`
      })
    )
  }
})
