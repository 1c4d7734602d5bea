/** Migrations of a PostgreSQL server that others use at the same time, and of files that were changed. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Pg from "pg"
import { migrate } from "../../../src/store/Database.ts"
import { eachEngineLive, serverUrl } from "../../TestDatabase.ts"

const table = "migrations_live"

const folder = (files: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-live-"))
      for (const [name, text] of Object.entries(files)) Fs.writeFileSync(Path.join(directory, name), text)
      return directory
    }),
    (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
  )

const dropTables = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`drop table if exists live_things, live_others, ${table}`)
)
/** Removes the tables of these tests before and after each, because other files use the same database. */
const withoutTables = Effect.acquireRelease(dropTables, () => Effect.orDie(dropTables))

const first = {
  "0001_things.sql":
    "create table live_things (id int); insert into live_things select generate_series(1, 1000)"
}
const second = { "0002_name.sql": "alter table live_things add column name text" }
const indexed = {
  "0002_index.sql":
    "-- spoke: no transaction\n-- Found by id.\ncreate index concurrently live_things_id on live_things (id);"
}

const columns = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ name: string }>`
    select attname as name from pg_attribute where attrelid = to_regclass('live_things') and attnum > 0 order by attnum`
).pipe(Effect.map((rows) => rows.map(({ name }) => name)))

const validIndexes = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ valid: boolean }>`
    select indisvalid as valid from pg_index where indrelid = to_regclass('live_things')`
).pipe(Effect.map((rows) => rows.map(({ valid }) => valid)))

/** Another session. */
const session = (name: string) =>
  Effect.flatMap(serverUrl, (url) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const client = new Pg.Client({ connectionString: Redacted.value(url), application_name: name })
        client.on("error", () => {})
        await client.connect()
        return client
      }),
      (client) => Effect.promise(() => client.end())
    )
  )

/** Another session that has read the table, and whose transaction stays open. */
const reader = Effect.tap(session("long-report"), (client) =>
  Effect.promise(() => client.query("begin; select id from live_things limit 1"))
)

const ended = (client: Pg.Client) => Effect.promise(() => client.query("rollback"))

/** Short waits, so that a test of many attempts is short. */
const shortWaits = { table, lockTimeout: "300 millis" } as const

/** Waits until another session waits for a lock on the table. */
const untilLockIsAwaited = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ n: number }>`
    select count(*)::int as n from pg_locks where not granted and relation = to_regclass('live_things')`
).pipe(
  Effect.map(([row]) => (row?.n ?? 0) > 0),
  Effect.delay("5 millis"),
  Effect.repeat({ until: (waits) => waits })
)

eachEngineLive("Migrations of a live database", (it, engine) => {
  it.scoped("refuse an applied file that has been changed, and name it", () =>
    Effect.gen(function* () {
      yield* withoutTables
      yield* migrate(yield* folder({ ...first, ...second }), { table })
      const changed = { ...first, "0002_name.sql": "alter table live_things add column title text" }
      const error = yield* Effect.flip(migrate(yield* folder(changed), { table }))
      expect(error).toMatchObject({ _tag: "MigrationError", reason: "state" })
      expect(error.message).toContain("0002_name.sql has been changed")
      expect(yield* columns).toEqual(["id", "name"])
      // How lines end is the checkout's business.
      const text = Object.fromEntries(
        Object.entries({ ...first, ...second }).map(([name, text]) => [name, text.replaceAll("\n", "\r\n")])
      )
      expect(yield* migrate(yield* folder(text), { table })).toEqual([])
    })
  )

  it.scoped("apply a file without a transaction, between others, once", () =>
    Effect.gen(function* () {
      yield* withoutTables
      const last = { "0003_name.sql": "alter table live_things add column name text" }
      const files = yield* folder({ ...first, ...indexed, ...last })
      expect(yield* migrate(files, { table })).toEqual([
        [1, "things"],
        [2, "index"],
        [3, "name"]
      ])
      expect(yield* validIndexes).toEqual([true])
      expect(yield* columns).toEqual(["id", "name"])
      expect(yield* migrate(files, { table })).toEqual([])
    })
  )

  it.scoped("commit a file with its own transaction between those before and after it", () =>
    Effect.gen(function* () {
      yield* withoutTables
      const own = {
        "0002_name.sql":
          "alter table live_things add column name text; alter table live_things add column other text",
        "0003_own.sql":
          "-- spoke: own transaction\nupdate live_things set name = id; update live_things set other = name"
      }
      const bad = yield* folder({
        ...first,
        ...own,
        "0004_bad.sql": "alter table live_things add column id text"
      })
      expect(yield* Effect.flip(migrate(bad, { table }))).toMatchObject({ reason: "failed" })
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select count(*)::int as n from live_things where other = id::text`).toEqual([
        { n: 1_000 }
      ])
      const good = yield* folder({
        ...first,
        ...own,
        "0004_more.sql": "alter table live_things add column more text"
      })
      expect(yield* migrate(good, { table })).toEqual([[4, "more"]])
      expect(yield* columns).toEqual(["id", "name", "other", "more"])
    })
  )

  it.scoped("refuse a statement outside a transaction that cannot be repeated, before anything changes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* withoutTables
      for (const text of [
        "update live_things set id = id + 1",
        "create index concurrently on live_things (id)"
      ]) {
        const files = { ...first, "0002_bad.sql": `-- spoke: no transaction\n${text}` }
        const error = yield* Effect.flip(migrate(yield* folder(files), { table }))
        expect(error.message).toContain(text)
      }
      expect(yield* sql`select to_regclass('live_things') is null as none`).toEqual([{ none: true }])
    })
  )

  it.scoped("restore the time limits of the session", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const limits = sql<{ text: string }>`
        select string_agg(current_setting(name), ' ' order by name) as text
        from unnest(array['lock_timeout', 'statement_timeout']) name`
      yield* withoutTables
      const [before] = yield* limits
      yield* migrate(yield* folder({ ...first, ...indexed }), { table })
      const after = yield* Effect.all(
        Array.from({ length: 20 }, () => limits),
        { concurrency: 10 }
      )
      expect(new Set(after.map(([row]) => row?.text))).toEqual(new Set([before?.text]))
    })
  )

  if (engine === "embedded") return

  it.scoped("block no query while they wait for a long reader, and succeed once it has ended", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* withoutTables
      yield* migrate(yield* folder(first), { table })
      const long = yield* reader
      const migrating = yield* Effect.fork(migrate(yield* folder({ ...first, ...second }), shortWaits))
      // Each is asked while the migration waits, and has to wait behind it.
      for (let round = 0; round < 3; round++) {
        yield* untilLockIsAwaited
        const read = sql`select count(*)::int as n from live_things`
        const written = sql`insert into live_things (id) values (0)`
        // The server itself refuses those that wait for longer than the migration may make them.
        const bounded = (statement: Effect.Effect<unknown, unknown>) =>
          sql.withTransaction(Effect.zipRight(sql`set local statement_timeout = '5s'`, statement))
        yield* Effect.all([bounded(read), bounded(written)], { concurrency: 2 })
        expect(yield* Fiber.poll(migrating)).toMatchObject({ _tag: "None" })
      }
      yield* ended(long)
      expect(yield* Fiber.join(migrating)).toEqual([[2, "name"]])
      expect(yield* columns).toEqual(["id", "name"])
      expect(yield* sql`select count(*)::int as n from live_things`).toEqual([{ n: 1003 }])
    })
  )

  it.scoped(
    "name the holder of the lock and a remedy, and change nothing, when the reader does not end",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* withoutTables
        yield* migrate(yield* folder(first), { table })
        const long = yield* reader
        const { rows } = yield* Effect.promise(() =>
          long.query<{ pid: number }>("select pg_backend_pid() as pid")
        )
        const files = {
          ...first,
          "0002_others.sql": "create table live_others ()",
          "0003_name.sql": "alter table live_things add column name text"
        }
        const error = yield* Effect.flip(
          migrate(yield* folder(files), { ...shortWaits, giveUpAfter: "1 second" })
        )
        expect(error).toMatchObject({ _tag: "MigrationError", reason: "locked" })
        expect(error.message).toMatch(
          /^The migration 0003_name\.sql did not get a lock that it needs \(SQLSTATE 55P03\)\. The lock is held by session \d+ of "long-report" \(idle in transaction, its transaction open for \d+ seconds\)\. End that transaction/
        )
        expect(error.message).toContain(`pg_terminate_backend(${rows[0]?.pid})`)
        expect(error.message).not.toContain("limit 1")
        expect(yield* columns).toEqual(["id"])
        expect(yield* sql`select to_regclass('live_others') is null as none`).toEqual([{ none: true }])
      })
  )

  it.scoped("build an index without blocking readers and writers, and wait for earlier transactions", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* withoutTables
      yield* migrate(yield* folder(first), { table })
      const writer = yield* session("writer")
      yield* Effect.promise(() => writer.query("begin; insert into live_things (id) values (-1)"))
      const files = yield* folder({ ...first, ...indexed })
      const migrating = yield* Effect.fork(migrate(files, shortWaits))
      const [another] = yield* Effect.all([Effect.fork(migrate(files, shortWaits))])
      yield* Effect.repeat(Effect.delay(validIndexes, "5 millis"), { until: (found) => found.length === 1 })
      // Longer than a statement with a short limit would wait.
      for (let round = 0; round < 20; round++) {
        yield* sql`insert into live_things (id) values (${round})`
        yield* Effect.sleep("20 millis")
      }
      expect(yield* validIndexes).toEqual([false])
      yield* ended(writer)
      const applied = [...(yield* Fiber.join(migrating)), ...(yield* Fiber.join(another))]
      expect(applied).toEqual([[2, "index"]])
      expect(yield* validIndexes).toEqual([true])
    })
  )

  it.scoped("build an index again that was left unfinished by a kill", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* withoutTables
      yield* migrate(yield* folder(first), { table })
      const builder = yield* session("builder")
      const writer = yield* session("writer")
      yield* Effect.promise(() => writer.query("begin; insert into live_things (id) values (-1)"))
      const built = builder
        .query("create index concurrently live_things_id on live_things (id)")
        .catch(() => {})
      yield* Effect.repeat(Effect.delay(validIndexes, "5 millis"), { until: (found) => found.length === 1 })
      yield* sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'builder'`
      yield* Effect.promise(() => built)
      yield* ended(writer)
      expect(yield* validIndexes).toEqual([false])
      yield* migrate(yield* folder({ ...first, ...indexed }), shortWaits)
      expect(yield* validIndexes).toEqual([true])
    })
  )

  it.scoped("wait without a limit for another process that migrates", () =>
    Effect.gen(function* () {
      yield* withoutTables
      const files = {
        ...first,
        "0002_slow.sql": "select pg_sleep(1.5); alter table live_things add column name text"
      }
      const directory = yield* folder(files)
      const options = { ...shortWaits, giveUpAfter: "300 millis" } as const
      const both = yield* Effect.all([migrate(directory, options), migrate(directory, options)], {
        concurrency: 2
      })
      expect(both.flat()).toHaveLength(2)
    })
  )
})
