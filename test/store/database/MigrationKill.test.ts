/**
 * A migration whose process is killed at each of its statements, on both engines: it is applied completely or not at
 * all.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, inject } from "vitest"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl, TestServer, thread } from "../../TestDatabase.ts"
import { bundle, discard, run } from "../../Children.ts"

/**
 * Prints what the previous process has left, removes it, and migrates. Kills itself before its `at`th statement, or
 * during it.
 */
const migrator = `
  import * as SqlClient from "@effect/sql/SqlClient"
  import * as Effect from "effect/Effect"
  import * as Redacted from "effect/Redacted"
  import Pg from "pg"
  import { layerEmbedded, layerPostgres, migrate } from "../src/store/Database.ts"
  const [, , folder, place, seed, at, moment, thread] = process.argv
  let left = Infinity
  const die = () => process.kill(process.pid, "SIGKILL")
  const query = Pg.Client.prototype.query
  Pg.Client.prototype.query = function (...given) {
    left -= 1
    if (left === 0 && moment === "before") die()
    const sent = query.apply(this, given)
    if (left === 0) setTimeout(die, 2)
    return sent
  }
  const program = Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const there = (name) => Effect.map(sql\`select to_regclass(\${name}) is not null as there\`, ([row]) => row.there)
    const tables = []
    for (const name of ["kill_a", "kill_b", "kill_c"]) tables.push(yield* there(name))
    const noted = (yield* there("migrations_kill")) ? (yield* sql\`select count(*)::int as n from migrations_kill\`)[0].n : 0
    console.log(tables.every((one) => one === (noted === 3)) && (noted === 0 || noted === 3) ? (noted === 3 ? "all" : "nothing") : "a part")
    yield* sql\`drop table if exists kill_a, kill_b, kill_c, migrations_kill\`
    left = Number(at)
    yield* migrate(folder, { table: "migrations_kill" })
    left = Infinity
    console.log("migrated")
  })
  const database = place.startsWith("postgres:")
    ? layerPostgres({ url: Redacted.make(place), maxConnections: 1 })
    : layerEmbedded({ dataDir: place, seed, thread: new URL(thread) })
  Effect.runPromise(Effect.provide(program, database)).then(() => process.exit(0), (error) => {
    console.log(String(error))
    process.exit(1)
  })`

const temporary = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-kill-"))
const folder = Path.join(temporary, "migrations")
let module = ""
beforeAll(async () => {
  module = await bundle(migrator)
  Fs.mkdirSync(folder)
  for (const [place, name] of ["a", "b", "c"].entries()) {
    const text = `create table kill_${name} (id int); insert into kill_${name} select generate_series(1, 20000);
      create index on kill_${name} (id)`
    Fs.writeFileSync(Path.join(folder, `000${place + 1}_${name}.sql`), text)
  }
})
afterAll(() => {
  discard(module)
  Fs.rmSync(temporary, { recursive: true, force: true })
})

/**
 * Kills at one statement later each time, until the migration ends. Returns what each process found, and the last
 * output.
 */
const killed = async (place: string, moment: "before" | "during") => {
  const found: Array<string | undefined> = []
  for (let at = 1; at < 60; at++) {
    const child = run(module, [folder, place, inject("seed"), String(at), moment, thread.href])
    found.push(await child.line())
    const end = await child.line()
    await child.kill()
    if (end !== undefined) return { found, end }
  }
  return { found, end: undefined }
}

/**
 * The minimum number of statements at which it is killed: for the table of migrations, the transaction, each migration,
 * and the statements before and after. A statement that is killed while it runs may have ended, with the migration.
 */
const kills = { before: 9, during: 5 } as const

const check = ({ end, found }: Awaited<ReturnType<typeof killed>>, least: number) => {
  expect(end).toBe("migrated")
  expect(found.length).toBeGreaterThanOrEqual(least)
  expect(found.filter((one) => one !== "all" && one !== "nothing")).toEqual([])
}

/** Other tests of the worker read what tables there are. */
const dropped = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.orDie(sql`drop table if exists kill_a, kill_b, kill_c, migrations_kill`)
)

describe("A migration that is killed at any of its statements", () => {
  for (const moment of ["before", "during"] as const) {
    it.live(
      `is there whole or not at all on the embedded database, ${moment} each`,
      () =>
        Effect.promise(async () =>
          check(await killed(Path.join(temporary, `data-${moment}`), moment), kills[moment])
        ),
      300_000
    )
    it.live.skipIf(binaries === undefined)(
      `is there whole or not at all on a server, ${moment} each`,
      () =>
        Effect.flatMap(serverUrl, (url) =>
          Effect.promise(async () => check(await killed(Redacted.value(url), moment), kills[moment]))
        ).pipe(Effect.ensuring(Effect.provide(dropped, TestServer))),
      300_000
    )
  }
})
