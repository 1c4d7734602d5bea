/** Another process with files of an embedded database open, without our lock. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, inject } from "vitest"
import { layerEmbedded } from "../../../src/store/Database.ts"
import { lockDirectory } from "../../../src/store/database/DataDirectoryLock.ts"
import { bundle, discard, run } from "../../Children.ts"

/**
 * Opens the database of its first argument, with our layer or with PGlite itself, writes a row, and runs until it is
 * killed.
 */
const spokeWriter = `
  import * as SqlClient from "@effect/sql/SqlClient"
  import * as Effect from "effect/Effect"
  import { layerEmbedded } from "../src/store/Database.ts"
  const [, , dataDir, seed] = process.argv
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql\`create table if not exists kept (id int)\`
    yield* sql\`insert into kept values (1)\`
    console.log("open")
    process.on("SIGUSR2", () => Effect.runPromise(sql\`insert into kept values (2)\`).then(() => console.log("written")))
    yield* Effect.never
  }).pipe(Effect.provide(layerEmbedded({ dataDir, seed })), Effect.runPromise).catch((error) => console.log(String(error)))`

const pgliteWriter = `
  import { PGlite } from "@electric-sql/pglite"
  const db = await PGlite.create({ dataDir: process.argv[2] + "/database" })
  console.log("open")
  setInterval(() => {}, 1_000)`

const modules = { spokeWriter: "", pgliteWriter: "" }
beforeAll(async () => {
  modules.spokeWriter = await bundle(spokeWriter)
  modules.pgliteWriter = await bundle(pgliteWriter)
}, 60_000)
afterAll(() => Promise.all(Object.values(modules).map(discard)))

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-foreign-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const start = (module: keyof typeof modules, directory: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const child = yield* Effect.sync(() => run(modules[module], [directory, inject("seed")]))
      expect(yield* Effect.promise(child.line)).toBe("open")
      return child
    }),
    (child) => Effect.promise(child.kill)
  )

const kept = (dataDir: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql<{ id: number }>`select id from kept order by id`).pipe(
    Effect.provide(layerEmbedded({ dataDir, seed: inject("seed") })),
    Effect.map((rows) => rows.map(({ id }) => id))
  )

/** A hash of every file of the database. */
const fingerprint = (dataDir: string): string => {
  const hash = createHash("sha256")
  const root = Path.join(dataDir, "database")
  for (const name of Fs.readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted()) {
    const file = Path.join(root, name)
    if (Fs.statSync(file).isFile()) hash.update(name).update(Fs.readFileSync(file))
  }
  return hash.digest("hex")
}

describe("An embedded database that is open", () => {
  it.scopedLive(
    "cannot be opened with PGlite itself, is not changed by the attempt, and opens again after kill -9",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporary
        const child = yield* start("spokeWriter", directory)
        const before = fingerprint(directory)
        const opened = yield* Effect.exit(
          Effect.tryPromise(() => PGlite.create({ dataDir: Path.join(directory, "database") }))
        )
        expect(opened._tag).toBe("Failure")
        expect(fingerprint(directory)).toBe(before)
        child.process.kill("SIGUSR2")
        expect(yield* Effect.promise(child.line)).toBe("written")
        yield* Effect.promise(child.kill)
        expect(yield* kept(directory)).toEqual([1, 2])
        // And left in order, it is anybody's.
        const db = yield* Effect.promise(() => PGlite.create({ dataDir: Path.join(directory, "database") }))
        expect((yield* Effect.promise(() => db.query("select id from kept order by id"))).rows).toHaveLength(
          2
        )
        yield* Effect.promise(() => db.close())
      }),
    120_000
  )

  it.scopedLive.skipIf(process.platform !== "linux")(
    "with PGlite itself is refused by us, with the id of the process",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporary
        expect(
          yield* Effect.exit(
            Effect.scoped(
              Effect.provide(Effect.void, layerEmbedded({ dataDir: directory, seed: inject("seed") }))
            )
          )
        ).toMatchObject({ _tag: "Success" })
        const child = yield* start("pgliteWriter", directory)
        const refusal = yield* Effect.flip(kept(directory))
        expect(refusal).toMatchObject({ _tag: "DataDirectoryLocked", pid: child.process.pid })
        yield* Effect.promise(child.kill)
      }),
    120_000
  )

  it.scopedLive(
    "reports that its lock was removed while its process was suspended, so that the process ends",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporary
        const told: Array<string> = []
        yield* lockDirectory(directory, (reason) => Effect.sync(() => told.push(reason)))
        for (const name of Fs.readdirSync(directory)) Fs.rmSync(Path.join(directory, name))
        while (told.length === 0) yield* Effect.sleep("50 millis")
        expect(told).toEqual([expect.stringContaining("another process has taken it")])
      })
  )
})
