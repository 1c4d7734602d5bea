/** The end of the embedded engine: on a disk without room for its log, for real, and as an engine tells of it. */
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
import { guard } from "../../../src/store/database/Panic.ts"
import { bundle, discard, run } from "../../Children.ts"

/** Changes rows until the disk is full, and goes on asking. */
const writer = `
  import * as SqlClient from "@effect/sql/SqlClient"
  import * as Effect from "effect/Effect"
  import * as Cause from "effect/Cause"
  import * as Fs from "node:fs"
  import { isOutage } from "../src/http/Outage.ts"
  import { layerEmbedded, WhenEnded } from "../src/store/Database.ts"
  const [, , dataDir, seed] = process.argv
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
    Effect.provide(layerEmbedded({ dataDir, seed })),
    Effect.provideService(WhenEnded, Effect.sync(() => console.log("ended"))),
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

/** Whether this machine lets us have a disk of a size of ours. */
const mayMount = (() => {
  try {
    remove(small())
    return true
  } catch {
    return false
  }
})()

describe("An embedded database whose engine ends", () => {
  it.live.skipIf(!mayMount)(
    "for want of room for its log says so, holds nobody up, and has everything acknowledged when there is room again",
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
          Effect.sync(() => run(module, [dataDir, inject("seed")])),
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

  it("is asked nothing any more, and its end is told once", async () => {
    const answers: Array<() => Promise<ReadonlyArray<object>>> = [
      () => Promise.resolve([{ name: "error", severity: "ERROR" }]),
      () => Promise.reject(new Error("a statement's own")),
      () => Promise.resolve([{ name: "error", severity: "PANIC" }])
    ]
    let asked = 0
    let ended = 0
    const engine = { execProtocolStream: () => answers[asked++]?.() }
    // Only this one of the engine's methods is used.
    const db = engine as unknown as PGlite
    const { isOver } = guard(db, () => ended++)
    const ask = () => db.execProtocolStream(new Uint8Array())
    expect(await ask()).toHaveLength(1)
    await expect(ask()).rejects.toThrow("a statement's own")
    expect([isOver(), ended]).toEqual([false, 0])
    await expect(ask()).rejects.toMatchObject({ code: "57P02" })
    expect([isOver(), ended]).toEqual([true, 1])
    await expect(ask()).rejects.toMatchObject({ code: "57P02" })
    expect([asked, ended]).toEqual([3, 1])
  })

  it("ends too when its program breaks", async () => {
    const broken = Object.assign(new Error("unreachable"), { name: "RuntimeError" })
    const engine = { execProtocolStream: () => Promise.reject(broken) }
    const db = engine as unknown as PGlite
    let ended = 0
    const { isOver } = guard(db, () => ended++)
    await expect(db.execProtocolStream(new Uint8Array())).rejects.toMatchObject({ code: "57P02" })
    expect([isOver(), ended]).toEqual([true, 1])
  })
})
