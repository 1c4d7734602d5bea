/** Exports of many parts: at the same time, of one moment, and continued after an interruption. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Manifest from "../../src/app/backup/Manifest.ts"
import { verify } from "../../src/app/backup/PartFile.ts"
import * as Parts from "../../src/app/backup/Parts.ts"
import { forEveryTenant } from "../../src/concurrency/TenantSession.ts"
import { onSnapshot } from "../../src/store/archive/Snapshot.ts"
import * as Tables from "../../src/store/archive/Tables.ts"
import { filesBelow } from "../Archives.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

/** Keys of text and of numbers. */
const names = ["dedupe_keys", "login_failures"]

eachEngineLive("An export in parts", (it, engine) => {
  const streams = engine === "embedded" ? 1 : 3
  const scratch = Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-parts-"))),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true }))
  ).pipe(Effect.map((folder) => Path.join(folder, "archive")))

  const insert = (from: number, to: number) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.zipRight(
        sql`insert into dedupe_keys (key, expires_at) select 'Ä-' || n, 'infinity' from generate_series(${from}::int, ${to}::int) n`,
        sql`insert into login_failures (email, address) select n, E'\\t' from generate_series(${from}::int, ${to}::int) n`
      ).pipe(sql.withTransaction)
    )

  const header: Manifest.NewHeader = { spoke: "archive", format: 2, version: "0", migrations: [], keys: [] }

  const exported = (folder: string, atPart: (count: number) => Effect.Effect<void> = () => Effect.void) =>
    Effect.gen(function* () {
      const tables = (yield* Tables.tables).filter(({ table }) => names.includes(table))
      const { add, finished } = yield* Manifest.begin(folder, header)
      let count = 0
      const { parts, writeParts } = yield* Parts.make({
        folder,
        tables,
        tenantId: null,
        finished,
        add: (part) =>
          Effect.zipRight(
            add(part),
            Effect.suspend(() => atPart(++count))
          ),
        reseal: null,
        rowsPerPart: 7
      })
      yield* onSnapshot(streams, writeParts)
      return { parts: [...parts.values()], written: count }
    }).pipe(Effect.scoped, forEveryTenant("archive"))

  const archived = (folder: string, parts: ReadonlyArray<Manifest.Part>, table: string) => {
    const files = new Map(filesBelow(folder).map(({ bytes, name }) => [name, bytes.toString()]))
    return parts
      .filter((part) => part.table === table)
      .flatMap(({ file, rows }) => {
        const lines = (files.get(file) ?? "").split("\n").slice(0, -1)
        expect(lines.length).toBe(rows)
        return lines
      })
      .toSorted()
  }

  const stored = (table: string) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`set local time zone 'UTC'`
      const rows = yield* table === "dedupe_keys"
        ? sql<{
            readonly line: string
          }>`select json_build_array(key::text, expires_at::text)::text as line from dedupe_keys`
        : sql<{
            readonly line: string
          }>`select json_build_array(id::text, email::text, address::text, at::text)::text as line from login_failures`
      return rows.map(({ line }) => line).toSorted()
    }).pipe((read) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(read)))

  it.scoped("has each row once, with several streams", () =>
    Effect.gen(function* () {
      yield* reset
      const folder = yield* scratch
      yield* insert(1, 100)
      const { parts } = yield* exported(folder)
      expect(parts.length).toBe(2 * Math.ceil(101 / 7))
      for (const table of names) expect(archived(folder, parts, table)).toEqual(yield* stored(table))
    })
  )

  it.scoped("is of one moment, while rows are written", () =>
    Effect.gen(function* () {
      yield* reset
      const folder = yield* scratch
      yield* insert(1, 50)
      // In a transaction of its own, not in that of the stream.
      const outside = Runtime.runPromise(yield* Effect.runtime<SqlClient.SqlClient>())
      const { parts } = yield* exported(folder, (count) =>
        // The embedded database has one connection, so that no write can come between.
        engine === "embedded"
          ? Effect.void
          : Effect.promise(() => outside(insert(1_000 * count, 1_000 * count + 2)))
      )
      for (const table of names) expect(archived(folder, parts, table).length).toBe(50)
    })
  )

  it.scoped(
    "goes on after an interruption: parts whose rows are the same are kept, others are written again",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const folder = yield* scratch
        yield* insert(1, 100)
        const stop = (count: number) => (count > 12 ? Effect.interrupt : Effect.void)
        expect((yield* Effect.exit(exported(folder, stop)))._tag).toBe("Failure")
        const kept = filesBelow(folder).filter(({ name }) => name.startsWith("rows/")).length
        expect(kept).toBeGreaterThanOrEqual(12)
        yield* sql`delete from dedupe_keys where key = 'Ä-10'`
        yield* sql`update dedupe_keys set expires_at = '2026-01-01' where key = 'Ä-30'`
        yield* insert(101, 130)
        const { parts, written } = yield* exported(folder)
        expect(written).toBeLessThan(parts.length - 5)
        for (const table of names) expect(archived(folder, parts, table)).toEqual(yield* stored(table))
      })
  )

  it.scoped(
    "writes a part again whose file is not the one that was noted, though its rows are the same as then",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const folder = yield* scratch
        yield* insert(1, 50)
        yield* exported(folder)
        const one = sql`select expires_at from dedupe_keys where key = 'Ä-30'`
        expect(yield* one).toHaveLength(1)
        // The command ends when the file has been replaced, before that is noted.
        yield* sql`update dedupe_keys set expires_at = '2026-01-01' where key = 'Ä-30'`
        const journal = Path.join(folder, "unfinished.jsonl")
        const noted = Fs.readFileSync(journal)
        yield* exported(folder)
        Fs.writeFileSync(journal, noted)
        yield* sql`update dedupe_keys set expires_at = 'infinity' where key = 'Ä-30'`
        const { parts, written } = yield* exported(folder)
        for (const part of parts) yield* verify(Path.join(folder, part.file), part)
        expect(written).toBe(1)
        for (const table of names) expect(archived(folder, parts, table)).toEqual(yield* stored(table))
      })
  )

  it.effect(
    "knows an order of all tables of a tenant in which each has a key that begins with the tenant",
    () =>
      Effect.gen(function* () {
        const tables = yield* Tables.tables
        const wrong = tables.filter(({ key, owner }) => owner === "tenant_id" && key[0] !== "tenant_id")
        expect(wrong.map(({ table }) => table)).toEqual(["billing_events", "email_logs"])
      })
  )
})
