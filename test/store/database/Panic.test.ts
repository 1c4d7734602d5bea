/** The embedded engine ends: on a real disk without room for its log, and with an engine that reports a panic. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import type { PGlite } from "@electric-sql/pglite"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { describe, inject } from "vitest"
import { layerEmbedded } from "../../../src/store/Database.ts"
import { engineOf } from "../../../src/store/database/Engine.ts"
import { bundle, discard, run } from "../../Children.ts"
import { thread } from "../../TestDatabase.ts"

/** Changes rows until the disk is full, and sends further statements. */
const writer = `
  import * as SqlClient from "@effect/sql/SqlClient"
  import * as Effect from "effect/Effect"
  import * as Cause from "effect/Cause"
  import * as Fs from "node:fs"
  import { isOutage } from "../src/concurrency/DatabaseOutage.ts"
  import { layerEmbedded, OnEngineFailure } from "../src/store/Database.ts"
  const [, , dataDir, seed, thread] = process.argv
  const fill = Effect.sync(() => {
    const file = Fs.openSync(dataDir + "/database/ballast", "w")
    for (const size of [1_048_576, 512])
      try {
        for (;;) Fs.writeSync(file, Buffer.alloc(size))
      } catch {}
  })
  const failure = (effect) => Effect.map(Effect.flip(Effect.sandbox(effect)), (cause) => isOutage(Cause.squash(cause)))
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql\`create table counted (id int primary key, count int) with (fillfactor = 20)\`
    yield* sql\`insert into counted select n, 0 from generate_series(1, 2000) n\`
    yield* sql\`checkpoint\`
    yield* fill
    let times = 0
    const change = Effect.tap(sql\`update counted set count = count + 1\`, () => Effect.sync(() => { times++ }))
    const select = sql\`select 1\`
    const outages = yield* Effect.forEach([Effect.forever(change), select, sql.withTransaction(select)], failure)
    console.log("told " + JSON.stringify({ times, outages }))
  }).pipe(
    Effect.provide(layerEmbedded({ dataDir, seed, ...(thread && { thread: new URL(thread) }) })),
    Effect.provideService(OnEngineFailure, () => Effect.sync(() => console.log("ended"))),
    Effect.runPromise
  ).then(() => console.log("closed"), (error) => console.log(String(error)))`

const small = () => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-small-"))
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=160m,mode=700", "tmpfs", folder], { stdio: "ignore" })
  return folder
}

const remove = (folder: string) => {
  execFileSync("umount", ["-l", folder], { stdio: "ignore" })
  Fs.rmSync(folder, { recursive: true })
}

/** Whether this process may mount a small disk. */
const mayMount = (() => {
  try {
    remove(small())
    return true
  } catch {
    return false
  }
})()

describe("An embedded database whose engine ends", () => {
  for (const [place, script] of [
    ["on the thread of its callers", ""],
    ["on one of its own", thread.href]
  ] as const)
    it.live.skipIf(!mayMount)(
      `for want of room for its log says so, ${place}, holds nobody up, and has everything acknowledged when there is room again`,
      () =>
        Effect.gen(function* () {
          const dataDir = yield* Effect.acquireRelease(Effect.sync(small), (folder) =>
            Effect.sync(() => remove(folder))
          )
          const module = yield* Effect.acquireRelease(
            Effect.promise(() => bundle(writer)),
            (file) => Effect.sync(() => discard(file))
          )
          const child = yield* Effect.acquireRelease(
            Effect.sync(() => run(module, [dataDir, inject("seed"), script])),
            ({ kill }) => Effect.promise(kill)
          )
          const lines: Array<string> = []
          while (lines.at(-1) !== "closed") lines.push((yield* Effect.promise(child.line)) ?? "closed")
          expect(lines.filter((line) => !line.includes("level=FATAL"))).toEqual([
            "ended",
            expect.stringMatching("^told "),
            "closed"
          ])
          const told = lines.find((line) => line.startsWith("told "))?.slice(5) ?? "{}"
          const { outages, times } = JSON.parse(told)
          expect(outages).toEqual([true, true, true])
          expect(times).toBeGreaterThan(0)

          yield* Effect.promise(child.kill)
          Fs.rmSync(Path.join(dataDir, "database", "ballast"))
          const counts = yield* Effect.flatMap(
            SqlClient.SqlClient,
            (sql) => sql`select min(count), max(count) from counted`
          ).pipe(Effect.provide(layerEmbedded({ dataDir })))
          expect(counts).toEqual([{ min: times, max: times }])
        }).pipe(Effect.scoped),
      120_000
    )

  /** One message of the protocol: an error with its severity. */
  const error = (severity: string) => {
    const fields = Buffer.from(`S${severity}\0V${severity}\0MNo space left on device\0\0`)
    const head = Buffer.alloc(5)
    head.write("E")
    head.writeInt32BE(fields.length + 4, 1)
    return Buffer.concat([head, fields])
  }
  const parsed = Buffer.from([0x31, 0, 0, 0, 4])
  /** A row with two texts; the first ends where the length of the second begins, whose bytes are zeros. */
  const row = Buffer.from([
    0x44,
    0,
    0,
    0,
    22,
    0,
    2,
    0,
    0,
    0,
    7,
    ...Buffer.from("VPANIC"),
    0,
    0,
    0,
    0,
    1,
    0x78
  ])

  /** Only this one of the engine's methods is used. */
  const engine = (answers: ReadonlyArray<() => Promise<Uint8Array>>) => {
    const asked: Array<number> = []
    const execProtocolRawStream: PGlite["execProtocolRawStream"] = async (request, { onRawData }) => {
      const answer = answers[asked.push(request.length) - 1]
      if (answer !== undefined) onRawData(await answer())
    }
    let ended = 0
    const { ask, hasEnded } = engineOf({ execProtocolRawStream } as unknown as PGlite, () => ended++)
    const answer = () => ask(new Uint8Array(1)).catch((error: unknown) => error)
    return { answer, state: () => ({ asked: asked.length, ended, over: hasEnded() }) }
  }

  it("gets no further requests, and its end is reported once", async () => {
    const { answer, state } = engine([
      () => Promise.resolve(error("ERROR")),
      () => Promise.resolve(row),
      () => Promise.reject(new Error("a statement's own")),
      () => Promise.resolve(Buffer.concat([parsed, error("PANIC")]))
    ])
    expect(await answer()).toEqual(new Uint8Array(error("ERROR")))
    expect(await answer()).toEqual(new Uint8Array(row))
    expect(await answer()).toMatchObject({ message: "a statement's own" })
    expect(state()).toEqual({ asked: 3, ended: 0, over: false })
    expect(await answer()).toMatchObject({ code: "57P02" })
    expect(state()).toEqual({ asked: 4, ended: 1, over: true })
    expect(await answer()).toMatchObject({ code: "57P02" })
    expect(state()).toEqual({ asked: 4, ended: 1, over: true })
  })

  it("ends when its program crashes", async () => {
    const broken = Object.assign(new Error("unreachable"), { name: "RuntimeError" })
    const { answer, state } = engine([() => Promise.reject(broken)])
    expect(await answer()).toMatchObject({ code: "57P02" })
    expect(state()).toEqual({ asked: 1, ended: 1, over: true })
  })
})
