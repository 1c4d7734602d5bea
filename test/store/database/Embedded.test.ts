import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, inject } from "vitest"
import { layerEmbedded, migrate } from "../../../src/store/Database.ts"
import { bundle, discard, run } from "../../Children.ts"
import { noDisk, smallDisk } from "../../faults/Disk.ts"
import { migrations, thread } from "../../TestDatabase.ts"

/** Inserts tenants one after another, and prints the number of each that the database has acknowledged. */
const writer = `
  import * as SqlClient from "@effect/sql/SqlClient"
  import * as Effect from "effect/Effect"
  import { layerEmbedded, migrate } from "../src/store/Database.ts"
  const [, , dataDir, seed, migrations] = process.argv
  Effect.gen(function*() {
    yield* migrate(migrations)
    const sql = yield* SqlClient.SqlClient
    for (let n = 1; ; n++) {
      yield* sql\`insert into tenants (id, name) values (\${"ten_" + n}, 'x')\`
      console.log(String(n))
    }
  }).pipe(Effect.provide(layerEmbedded({ dataDir, seed })), Effect.runPromise).catch((error) => console.log(error))`

let module = ""
beforeAll(async () => {
  module = await bundle(writer)
})
afterAll(() => discard(module))

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-data-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const tenants = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ count: number }>`select count(*)::int as count from tenants`
).pipe(Effect.map((rows) => rows[0]?.count))

const opened = <A, E>(dataDir: string, effect: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.provide(effect, layerEmbedded({ dataDir, seed: inject("seed") }))

describe("The embedded database", () => {
  it.scopedLive(
    "has every acknowledged row after kill -9, and no other user may read its files",
    () =>
      Effect.gen(function* () {
        const dataDir = Path.join(yield* temporary, "data")
        const child = yield* Effect.acquireRelease(
          Effect.sync(() => run(module, [dataDir, inject("seed"), migrations])),
          ({ kill }) => Effect.promise(kill)
        )
        let acknowledged = 0
        while (acknowledged < 25) acknowledged = Number(yield* Effect.promise(child.line))

        const modes = Fs.readdirSync(dataDir, { recursive: true, withFileTypes: true }).map((entry) => {
          const { mode } = Fs.statSync(Path.join(entry.parentPath, entry.name))
          return `${entry.isDirectory() ? "directory" : "file"} ${(mode & 0o777).toString(8)}`
        })
        expect(new Set(modes)).toEqual(new Set(["directory 700", "file 600"]))
        expect(Fs.statSync(dataDir).mode & 0o777).toBe(0o700)

        expect((yield* Effect.flip(opened(dataDir, tenants)))._tag).toBe("DataDirectoryLocked")

        yield* Effect.promise(child.kill)
        expect(yield* opened(dataDir, tenants)).toBeGreaterThanOrEqual(acknowledged)
      }),
    60_000
  )

  it.scopedLive(
    "is created again when its creation was interrupted, and keeps the remains",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* temporary
        Fs.mkdirSync(Path.join(dataDir, "database"))
        Fs.writeFileSync(Path.join(dataDir, "database", "PG_VERSION"), "18")
        Fs.writeFileSync(Path.join(dataDir, "database.creating"), "")
        expect(yield* opened(dataDir, tenants)).toBe(0)
        expect(Fs.existsSync(Path.join(dataDir, "database.creating"))).toBe(false)
        expect(Fs.readdirSync(dataDir).filter((name) => name.includes("unfinished"))).toHaveLength(1)
        expect(yield* opened(dataDir, migrate(migrations))).toEqual([])
      }),
    60_000
  )

  it.scopedLive(
    "fails with one short line when it does not open",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* temporary
        Fs.mkdirSync(Path.join(dataDir, "database"))
        Fs.writeFileSync(Path.join(dataDir, "database", "PG_VERSION"), "18")
        const error = yield* Effect.flip(opened(dataDir, tenants))
        expect(error._tag).toBe("DatabaseUnavailable")
        expect(error.message.length).toBeLessThan(300)
      }),
    60_000
  )

  for (const [where, own] of [
    ["on the thread of its callers", {}],
    ["on one of its own", { thread }]
  ] as const)
    it.scopedLive.skipIf(noDisk !== null)(
      `${where} that has no room on its disk says so, and is made once there is some`,
      () =>
        Effect.gen(function* () {
          const dataDir = yield* temporary
          const options = { dataDir, seed: inject("seed"), ...own }
          const disk = yield* Effect.acquireRelease(
            Effect.sync(() => smallDisk(Path.join(dataDir, "database"), "20m")),
            (disk) => Effect.sync(() => disk?.close())
          )
          const refused = Effect.provide(tenants, layerEmbedded(options))
          expect((yield* Effect.flip(refused)).message).toMatch(/: no space left on the device$/u)
          disk?.close()
          expect(yield* Effect.provide(tenants, layerEmbedded(options))).toBe(0)
        }),
      60_000
    )
})
