/**
 * Messages when the database refuses something: its own message, the SQLSTATE and a remedy, without values of rows or
 * addresses.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { expect, it as plain } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Pg from "pg"
import { randomUUID } from "node:crypto"
import { describe } from "vitest"
import { layerPostgres, migrate, refuseReadOnly } from "../../../src/store/Database.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { wrongCertificate } from "../../e2e/events/HostileReceiver.ts"
import { postgresStub, type Refusal, tlsStub } from "../../servers/PostgresStub.ts"
import { eachEngineLive, migrations, serverUrl } from "../../TestDatabase.ts"

const opened = (url: string) => layerPostgres({ url: Redacted.make(url), maxConnections: 2 })

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-failure-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** The message for a server at `url` that cannot be used. */
const refusalAt = (url: string) =>
  Effect.map(Effect.flip(Effect.provide(SqlClient.SqlClient, opened(url))), (error) => error.message)

const refusals: ReadonlyArray<readonly [Refusal, string]> = [
  [{ code: "28P01", message: 'password authentication failed for user "spoke"' }, "Check user and password"],
  [{ code: "28000", message: 'no pg_hba.conf entry for host "10.0.0.9", user "spoke"' }, "pg_hba.conf"],
  [{ code: "3D000", message: 'database "spoke" does not exist' }, "CREATE DATABASE"],
  [{ code: "53300", message: "sorry, too many clients already" }, "SPOKE_DATABASE_POOL"],
  [{ code: "57P03", message: "the database system is starting up" }, "try again when it is up"],
  [{ code: "53100", message: "could not write init file" }, "Make room"]
]

describe("A PostgreSQL server that refuses connections", () => {
  plain.live.each(refusals)("says %o", ([refusal, remedy]) =>
    Effect.gen(function* () {
      const told = yield* Effect.flatMap(postgresStub({ ...refusal, detail: "Row (4711)." }), refusalAt)
      expect(told).toContain(`${refusal.message} (SQLSTATE ${refusal.code})`)
      expect(told).toContain(remedy)
      expect(told).not.toContain("4711")
      expect(told).not.toContain("hunter2")
    }).pipe(Effect.scoped)
  )

  plain.live("is reported with its version when that is too old", () =>
    Effect.gen(function* () {
      const url = yield* postgresStub({ row: { number: "130011", version: "13.11" } })
      expect(yield* refusalAt(url)).toContain("PostgreSQL 13.11 is too old: 15 is needed")
    }).pipe(Effect.scoped)
  )

  plain.live(
    "is reported with the system's error code and without the password when it cannot be reached",
    () =>
      Effect.gen(function* () {
        const told = yield* refusalAt("postgres://spoke:hunter2@127.0.0.1:1/spoke")
        expect(told).toContain("cannot be reached (ECONNREFUSED)")
        expect(told).not.toContain("hunter2")
      })
  )
})

const certificate = wrongCertificate()

// CI has openssl: other suites need it there.
describe.skipIf(certificate === null)("A PostgreSQL server with TLS", () => {
  const server = tlsStub(certificate ?? { key: "", cert: "" })

  // First, because the driver warns once.
  plain.live("is connected to without warnings of the driver", () =>
    Effect.gen(function* () {
      const warned: Array<string> = []
      const onWarning = ({ message }: Error) => void warned.push(message)
      process.on("warning", onWarning)
      yield* refusalAt(`${yield* server}?sslmode=require`)
      yield* Effect.sleep("100 millis")
      process.off("warning", onWarning)
      expect(warned).toEqual([])
    }).pipe(Effect.scoped)
  )

  plain.live("whose certificate is not trusted is reported with what to add to DATABASE_URL", () =>
    Effect.gen(function* () {
      const url = yield* server
      for (const mode of ["require", "verify-full"]) {
        const told = yield* refusalAt(`${url}?sslmode=${mode}`)
        expect(told).toContain("is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)")
        expect(told).toContain("sslrootcert=")
        expect(told).not.toContain("hunter2")
      }
      expect(yield* refusalAt(`${url}?sslmode=no-verify`)).toContain("let in by TLS")
    }).pipe(Effect.scoped)
  )

  plain.live("is reported when a file of certificates cannot be read, or has one for another name", () =>
    Effect.gen(function* () {
      const url = yield* server
      const file = Path.join(yield* folder, "authority.pem")
      const told = refusalAt(`${url}?sslmode=require&sslrootcert=${file}`)
      expect(yield* told).toContain("sslkey) cannot be read (ENOENT)")
      Fs.writeFileSync(file, certificate?.cert ?? "")
      expect(yield* told).toContain("It is for another name")
    }).pipe(Effect.scoped)
  )
})

eachEngineLive("A statement that the database refuses", (it) => {
  const failing = (statement: string) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.flip(sql.unsafe(statement))).pipe(
      Effect.map((error) => ({ message: error.message, logged: Cause.pretty(Cause.fail(error)) }))
    )

  it.effect("reports the server's message and the SQLSTATE", () =>
    Effect.gen(function* () {
      const { logged, message } = yield* failing("select * from no_such_table")
      expect(message).toContain('relation "no_such_table" does not exist (SQLSTATE 42P01)')
      expect(message).toContain("spoke migrate")
      expect(logged).toContain("SQLSTATE 42P01")
    })
  )

  it.effect("reports no values of parameters or rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`create table refusing (id text primary key, most int check (most < 10))`
      yield* sql`insert into refusing values ('secret-4711', 1)`
      const statements = [
        "insert into refusing values ('secret-4711', 2)",
        "insert into refusing values ('secret-4711 b', 20)",
        "select 'secret-4711'::int",
        "select 'secret-4711'::timestamptz",
        "select 'secret-4711 ('::tsquery",
        `select '{"a": secret-4711}'::json`,
        "do $$ begin raise exception 'it was \"secret-4711\"'; end $$",
        "select * from refusing where 'a' ~ '[secret-4711'"
      ]
      for (const statement of statements) {
        const { logged, message } = yield* failing(statement)
        expect(message).toMatch(/SQLSTATE [0-9A-Z]{5}/u)
        expect(logged).not.toContain("secret-4711")
      }
      yield* sql`drop table refusing`
    })
  )

  it.scoped("reports the migration that failed, and why", () =>
    Effect.gen(function* () {
      const broken = yield* folder
      Fs.writeFileSync(Path.join(broken, "0001_broken.sql"), "create table a_broken_one (id no_such_type)")
      const { message } = yield* Effect.flip(migrate(broken, { table: "migrations_broken" }))
      expect(message).toContain("1_broken")
      expect(message).toContain('type "no_such_type" does not exist (SQLSTATE 42704)')
      const sql = yield* SqlClient.SqlClient
      yield* sql`drop table migrations_broken`
    })
  )
})

describe.skipIf(binaries === undefined)("A role without the needed privileges", () => {
  /** A database with the tables of a superuser, as `as` sees it. */
  const setUp = (statements: (role: string) => ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const server = new URL(Redacted.value(yield* serverUrl))
      const role = `spoke_${randomUUID().replaceAll("-", "").slice(0, 16)}`
      const asSuperuser = (database: string, all: ReadonlyArray<string>) =>
        Effect.promise(async () => {
          const url = new URL(server.href)
          url.pathname = `/${database}`
          const client = new Pg.Client({ connectionString: url.href })
          await client.connect()
          for (const statement of all) await client.query(statement)
          await client.end()
        })
      yield* Effect.acquireRelease(
        asSuperuser("postgres", [`create role ${role} login`, `create database ${role}`]),
        () => asSuperuser("postgres", [`drop database ${role} with (force)`, `drop role ${role}`])
      )
      yield* asSuperuser(role, statements(role))
      const url = new URL(server.href)
      url.pathname = `/${role}`
      const superuser = url.href
      url.username = role
      return { role, url: url.href, superuser }
    })

  const started = Effect.zipRight(refuseReadOnly, migrate(migrations))

  plain.scopedLive("in the schema is told what to grant", () =>
    Effect.gen(function* () {
      const { role, url } = yield* setUp(() => [])
      const { message } = yield* Effect.flip(Effect.provide(started, opened(url)))
      expect(message).toContain("permission denied for schema public (SQLSTATE 42501)")
      expect(message).toContain(`GRANT USAGE, CREATE ON SCHEMA public TO ${role}`)
    })
  )

  plain.scopedLive("in a database whose tables are another's is told whose they have to be", () =>
    Effect.gen(function* () {
      const { role, superuser, url } = yield* setUp((role) => [
        `grant usage, create on schema public to ${role}`
      ])
      yield* Effect.provide(started, opened(superuser))
      const unread = yield* Effect.flip(Effect.provide(started, opened(url)))
      expect(unread.message).toContain("permission denied for table migrations (SQLSTATE 42501)")
      expect(unread.message).toContain(`ALTER TABLE migrations OWNER TO ${role}`)
      const grant = Effect.flatMap(SqlClient.SqlClient, (sql) =>
        sql.unsafe(`grant all on all tables in schema public to ${role}`)
      )
      yield* Effect.provide(grant, opened(superuser))
      const next = yield* folder
      const files = Fs.readdirSync(migrations).filter((name) => name.endsWith(".sql"))
      for (const name of files) Fs.copyFileSync(Path.join(migrations, name), Path.join(next, name))
      const number = String(files.length + 1).padStart(4, "0")
      Fs.writeFileSync(Path.join(next, `${number}_next.sql`), "alter table agents add column next int")
      const unowned = yield* Effect.flip(Effect.provide(migrate(next), opened(url)))
      expect(unowned.message).toContain("must be owner of")
      expect(unowned.message).toContain(`OWNER TO ${role}`)
      expect(unowned.message).toContain("REASSIGN OWNED BY")
    })
  )

  plain.scopedLive("because nothing may be written is told before anything is tried", () =>
    Effect.gen(function* () {
      const { url } = yield* setUp((role) => [
        `grant usage, create on schema public to ${role}`,
        `alter role ${role} set default_transaction_read_only = on`
      ])
      const { message } = yield* Effect.flip(Effect.provide(started, opened(url)))
      expect(message).toContain("takes no writes")
      const written = Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.flip(sql`create table written ()`))
      const refused = yield* Effect.provide(written, opened(url))
      expect(refused).toBeInstanceOf(SqlError)
      expect(refused.message).toContain("SQLSTATE 25006")
      expect(refused.message).toContain("let DATABASE_URL name the primary")
    })
  )

  plain.scopedLive("for a statement that takes too long is told so", () =>
    Effect.gen(function* () {
      const { role, superuser, url } = yield* setUp(() => [])
      yield* Effect.provide(
        Effect.flatMap(SqlClient.SqlClient, (sql) =>
          sql.unsafe(`alter role ${role} set statement_timeout = 100`)
        ),
        opened(superuser)
      )
      const slow = Effect.flatMap(SqlClient.SqlClient, (sql) =>
        sql.withTransaction(
          Effect.zipRight(sql`set local statement_timeout = 100`, Effect.flip(sql`select pg_sleep(20)`))
        )
      )
      const { message } = yield* Effect.provide(slow, opened(url))
      expect(message).toContain("statement timeout (SQLSTATE 57014)")
      expect(message).toContain("took too long")
    })
  )

  plain.scopedLive(
    "on a connection that has become read-only gets a new one, in a transaction and without",
    () =>
      Effect.gen(function* () {
        const { superuser } = yield* setUp(() => ["create table kept (id int)"])
        const one = layerPostgres({ url: Redacted.make(superuser), maxConnections: 1 })
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const insert = sql`insert into kept values (1)`
          const session = Effect.map(
            sql<{ pid: number }>`select pg_backend_pid() as pid`,
            ([row]) => row?.pid
          )
          // As that of a primary which has become a standby.
          const demote = sql`set session characteristics as transaction read only`
          for (const write of [insert, sql.withTransaction(insert)]) {
            const before = yield* session
            yield* demote
            expect((yield* Effect.flip(write)).message).toContain("SQLSTATE 25006")
            yield* write
            expect(yield* session).not.toBe(before)
          }
        }).pipe(Effect.provide(one))
      })
  )
})
