/** Maintenance of the embedded engine, in a separate directory: the size of the log and of tables after many writes. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { describe, inject } from "vitest"
import { layerEmbedded } from "../../../src/store/Database.ts"
import { interval, maintainOnce } from "../../../src/store/database/EmbeddedMaintenance.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-upkeep-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const bytesOf = (folder: string): number =>
  Fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + Fs.statSync(Path.join(entry.parentPath, entry.name)).size, 0)

const megabyte = 1_048_576

const filled = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table counted (id int primary key, count int, filler text)`
  yield* sql`insert into counted select n, 0, repeat('x', 200) from generate_series(1, 10000) n`
  return sql
})

const dead = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`select pg_stat_force_next_flush()`
  const [row] = yield* sql<{ rows: number }>`
    select n_dead_tup::int as rows from pg_stat_user_tables where relname = 'counted'`
  return row?.rows ?? -1
})

describe("The embedded database", () => {
  it.scopedLive(
    "keeps its log and its tables small under continuous writes",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* temporary
        yield* Effect.gen(function* () {
          const sql = yield* filled
          const sizes: Array<number> = []
          for (let round = 0; round < 16; round++) {
            for (let times = 0; times < 4; times++) yield* sql`update counted set count = count + 1`
            yield* maintainOnce(sql)
            sizes.push(bytesOf(Path.join(dataDir, "database")))
          }
          // Several times as much has been written to the log and to dead rows meanwhile.
          expect(Math.max(...sizes.slice(8))).toBeLessThanOrEqual(Math.max(...sizes.slice(0, 8)) + megabyte)
          expect(bytesOf(Path.join(dataDir, "database/pg_wal"))).toBeLessThan(130 * megabyte)
          expect(yield* sql`select sum(count)::int as sum from counted`).toEqual([{ sum: 640_000 }])
          const [statistics] =
            yield* sql`select reltuples::int as rows from pg_class where relname = 'counted'`
          expect(statistics).toEqual({ rows: 10_000 })
        }).pipe(Effect.provide(layerEmbedded({ dataDir, seed: inject("seed") })))
      }),
    120_000
  )

  it.scoped(
    "is maintained as long as it is open",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* temporary
        const database = yield* Layer.build(layerEmbedded({ dataDir, seed: inject("seed") }))
        yield* Effect.gen(function* () {
          const sql = yield* filled
          for (const _ of ["once", "again"]) {
            yield* sql`update counted set count = count + 1`
            expect(yield* dead).toBeGreaterThan(9_000)
            yield* TestClock.adjust(interval)
            while ((yield* dead) > 0)
              yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
          }
        }).pipe(Effect.provide(database))
      }),
    60_000
  )
})
