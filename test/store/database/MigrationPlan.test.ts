/** The locks in a plan are those that the database takes. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it as plain } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { migrate, planMigrations } from "../../../src/store/Database.ts"
import { effectsOf, type LockMode, type Work } from "../../../src/store/database/StatementEffects.ts"
import { statementsOf } from "../../../src/store/database/SqlText.ts"
import { eachEngineLive, migrations } from "../../TestDatabase.ts"

const folder = (files: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-plan-"))
      for (const [name, text] of Object.entries(files)) Fs.writeFileSync(Path.join(directory, name), text)
      return directory
    }),
    (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
  )

const made = `create table plan_a (id int primary key, other int, word text);
  create table plan_b (id int primary key);
  create index plan_words on plan_a (word);
  insert into plan_a select n, n, n::text from generate_series(1, 500) n; insert into plan_b select generate_series(1, 500);
  create trigger plan_trigger before update on plan_a for each row execute function suppress_redundant_updates_trigger();
  alter table plan_a add constraint plan_later check (id > 0) not valid`

/** A statement, its strongest lock on plan_a, and its work. */
const statements: ReadonlyArray<readonly [string, LockMode, Work]> = [
  ["alter table plan_a add column x int", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a add column x timestamptz not null default now()", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a add column x text default 'a, (b; c'", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a add column x float8 default random()", "ACCESS EXCLUSIVE", "rewrite"],
  ["alter table plan_a add column x uuid default gen_random_uuid()", "ACCESS EXCLUSIVE", "rewrite"],
  ["alter table plan_a add column x bigserial", "ACCESS EXCLUSIVE", "rewrite"],
  ["alter table plan_a add column x int generated always as (id + 1) stored", "ACCESS EXCLUSIVE", "rewrite"],
  ["alter table plan_a add column x int check (x > 0)", "ACCESS EXCLUSIVE", "scan"],
  ["alter table plan_a add column x int references plan_b", "ACCESS EXCLUSIVE", "catalogue"],
  ["ALTER TABLE plan_a ALTER other TYPE bigint", "ACCESS EXCLUSIVE", "rewrite"],
  ["alter table plan_a alter column other set not null", "ACCESS EXCLUSIVE", "scan"],
  ["alter table plan_a alter column other set default 3", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a drop column other", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a rename column other to another", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a add constraint x check (id > 0) not valid", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a add constraint x check (id in (1, 2) or id > 0)", "ACCESS EXCLUSIVE", "scan"],
  ["alter table plan_a add constraint x unique (other)", "ACCESS EXCLUSIVE", "index"],
  ["alter table plan_a add foreign key (id) references plan_b", "SHARE ROW EXCLUSIVE", "scan"],
  ["alter table plan_a validate constraint plan_later", "SHARE UPDATE EXCLUSIVE", "scan"],
  ["create index x on plan_a (other) where id > 3", "SHARE", "index"],
  ["create unique index on plan_a using btree (other)", "SHARE", "index"],
  ["create statistics x (dependencies) on id, other from plan_a", "SHARE UPDATE EXCLUSIVE", "catalogue"],
  ["alter table plan_a disable trigger user", "SHARE ROW EXCLUSIVE", "catalogue"],
  ["alter table plan_a set (fillfactor = 70)", "SHARE UPDATE EXCLUSIVE", "catalogue"],
  ["alter table plan_a enable row level security", "ACCESS EXCLUSIVE", "catalogue"],
  ["alter table plan_a rename to plan_c", "ACCESS EXCLUSIVE", "catalogue"],
  ["lock table plan_b, plan_a in access exclusive mode", "ACCESS EXCLUSIVE", "catalogue"],
  ["drop trigger plan_trigger on plan_a", "ACCESS EXCLUSIVE", "catalogue"],
  ["drop index plan_words", "ACCESS EXCLUSIVE", "catalogue"],
  ["update plan_a set other = 1", "ROW EXCLUSIVE", "changed"],
  ["-- A word.\ndelete from only plan_a /* ; */ where id = 1", "ROW EXCLUSIVE", "changed"],
  ["insert into plan_a (id) values (501)", "ROW EXCLUSIVE", "added"],
  ["drop table plan_a", "ACCESS EXCLUSIVE", "catalogue"]
]

/** Lock modes from the weakest to the strongest, by the database's names. */
const strengths = [
  "AccessShareLock",
  "RowShareLock",
  "RowExclusiveLock",
  "ShareUpdateExclusiveLock",
  "ShareLock",
  "ShareRowExclusiveLock",
  "ExclusiveLock",
  "AccessExclusiveLock"
]

const inItsWords = (lock: LockMode) =>
  `${lock
    .split(" ")
    .map((word) => `${word.charAt(0)}${word.slice(1).toLowerCase()}`)
    .join("")}Lock`

const table = "migrations_plan"

eachEngineLive("The plan of migrations", (it) => {
  it.scoped("names the lock of each statement, and whether the table is rewritten", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe("drop table if exists plan_a, plan_b")
      yield* sql.unsafe(made)
      for (const [statement, lock, work] of statements) {
        const effect = effectsOf(statement).find(({ table }) => table === "plan_a" || table === "plan_words")
        expect([statement, effect?.lock, effect?.work]).toEqual([statement, lock, work])
        const look = sql<{ id: number | null; file: number | null }>`
          select oid::int as id, relfilenode::int as file from pg_class where relname = 'plan_a'`
        const [before] = yield* look
        const seen = Effect.gen(function* () {
          yield* sql.unsafe(statement)
          const locks = yield* sql<{ mode: string }>`
            select mode from pg_locks where pid = pg_backend_pid() and relation = ${before?.id ?? 0}`
          const [after] = yield* look
          return yield* Effect.fail({
            mode: locks
              .map(({ mode }) => mode)
              .toSorted((a, b) => strengths.indexOf(b) - strengths.indexOf(a))[0],
            rewritten: after !== undefined && after.file !== before?.file
          })
        })
        const found = yield* Effect.flip(sql.withTransaction(seen))
        expect([statement, found]).toEqual([
          statement,
          { mode: inItsWords(lock), rewritten: work === "rewrite" }
        ])
      }
      yield* sql.unsafe("drop table plan_a, plan_b")
    })
  )

  it.scoped("lists files, tables with their rows, and unknown statements, and changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(`drop table if exists plan_a, plan_b, plan_c, ${table}`)
      const first = { "0001_made.sql": made }
      yield* migrate(yield* folder(first), { table })
      yield* sql.unsafe("analyze plan_a")
      const files = yield* folder({
        ...first,
        "0002_more.sql": `create table plan_c (id int references plan_b); alter table plan_c add column x int;
          alter table plan_a add column x int, alter column other type bigint;
          do $$ begin perform 1; end $$;`,
        "0003_index.sql": "-- spoke: no transaction\ncreate index concurrently plan_other on plan_a (other);"
      })
      const planned = yield* planMigrations(files, table)
      expect(planned).toMatchObject([
        {
          file: "0002_more.sql",
          transaction: true,
          statements: [
            {
              known: true,
              locks: [{ table: "plan_b", lock: "SHARE ROW EXCLUSIVE", blocks: "writes", rows: null }]
            },
            { known: true, locks: [] },
            {
              known: true,
              locks: [
                { table: "plan_a", lock: "ACCESS EXCLUSIVE", work: "catalogue", rows: 500, seconds: 0 },
                { table: "plan_a", blocks: "reads and writes", work: "rewrite", rows: 500, seconds: 1 }
              ]
            },
            { statement: "do $$ begin perform 1; end $$", known: false, locks: [] }
          ]
        },
        {
          file: "0003_index.sql",
          transaction: false,
          statements: [{ locks: [{ table: "plan_a", lock: "SHARE UPDATE EXCLUSIVE", blocks: "nothing" }] }]
        }
      ])
      expect(yield* sql`select to_regclass('plan_c') is null as none`).toEqual([{ none: true }])
      yield* sql.unsafe(`drop table plan_a, plan_b, ${table}`)
    })
  )
})

plain("The plan knows every statement of our migrations except blocks of code", () => {
  const texts = Fs.readdirSync(migrations)
    .filter((name) => name.endsWith(".sql"))
    .map((name) => Fs.readFileSync(Path.join(migrations, name), "utf8"))
  const unknown = texts
    .flatMap(statementsOf)
    .filter((statement) => effectsOf(statement).some(({ work }) => work === "unknown"))
  expect(unknown.filter((statement) => !/^do \$\$/iu.test(statement))).toEqual([])
})
