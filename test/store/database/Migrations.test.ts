import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { addWeeks, layerPostgres, migrate, rowLevelSecurityState } from "../../../src/store/Database.ts"
import { analyzeGrown } from "../../../src/store/TableStatistics.ts"
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
    /** Runs `work` on a new database whose sessions look for tables in these schemas. */
    const inSchemas = <A, E>(
      searchPath: string,
      prepare: ReadonlyArray<string>,
      work: Effect.Effect<A, E, SqlClient.SqlClient>
    ) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`drop database if exists schemas`
        yield* sql`create database schemas`
        const url = new URL(Redacted.value(yield* serverUrl).replace(/postgres$/, "schemas"))
        const connect = () => Layer.fresh(layerPostgres({ url: Redacted.make(url.href), maxConnections: 2 }))
        const statements = Effect.flatMap(SqlClient.SqlClient, (other) =>
          Effect.forEach(prepare, (statement) => other.unsafe(statement))
        )
        yield* Effect.provide(statements, connect())
        url.searchParams.set("options", `-c search_path=${searchPath}`)
        return yield* Effect.ensuring(
          Effect.provide(work, connect()),
          Effect.ignore(sql`drop database schemas with (force)`)
        )
      })

    it.scoped("are applied in a schema whose name needs quotes, where everything finds their tables", () =>
      inSchemas(
        '"Spoke-Prod",public',
        ['create schema "Spoke-Prod"'],
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          expect(yield* migrate(migrations)).toHaveLength(names.length)
          yield* analyzeGrown
          yield* sql`drop table run_passages_first`
          yield* addWeeks
          const weeks = yield* sql`select from pg_inherits where inhparent = 'run_passages'::regclass`
          expect(weeks.length).toBeGreaterThan(2)
          expect((yield* rowLevelSecurityState("nobody")).tables).toContain("messages")
        })
      )
    )

    it.scoped("ignore a table `migrations` of another program in a later schema", () =>
      inSchemas(
        "spoke,public",
        ["create schema spoke", "create table migrations (id serial, migration text)"],
        Effect.gen(function* () {
          expect(yield* migrate(migrations)).toHaveLength(names.length)
          expect(yield* migrate(migrations)).toEqual([])
        })
      )
    )

    it.scoped("are refused beside the table `migrations` of another program", () =>
      inSchemas(
        "public",
        ["create table migrations (id serial, migration text)"],
        Effect.gen(function* () {
          const error = yield* Effect.flip(migrate(migrations))
          expect(error).toMatchObject({ _tag: "MigrationError", reason: "state" })
          expect(error.message).toContain("another program's")
        })
      )
    )

    it.scoped("are refused in a schema before the one that has the tables", () =>
      Effect.gen(function* () {
        const files = yield* folder({ "0001_first.sql": "create table first ()" })
        yield* inSchemas(
          "second,public",
          ["create schema second"],
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql.withTransaction(Effect.zipRight(sql`set local search_path = public`, migrate(files)))
            const error = yield* Effect.flip(migrate(files))
            expect(error).toMatchObject({ _tag: "MigrationError", reason: "state" })
            expect(error.message).toContain("Put public first")
          })
        )
      })
    )

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
