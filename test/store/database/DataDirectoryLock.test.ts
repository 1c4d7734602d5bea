import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe } from "vitest"
import { lockDirectory } from "../../../src/store/database/DataDirectoryLock.ts"
import { bundle, discard, run } from "../../Children.ts"

/** Locks its first argument, prints the outcome, and runs until it is killed. */
const locker = `
  import * as Effect from "effect/Effect"
  import { lockDirectory } from "../src/store/database/DataDirectoryLock.ts"
  const program = Effect.gen(function*() {
    yield* lockDirectory(process.argv[2])
    console.log("held")
    yield* Effect.never
  })
  Effect.runPromise(Effect.scoped(program)).catch((error) => {
    console.log(String(error.message))
  })`

let module = ""
beforeAll(async () => {
  module = await bundle(locker)
})
afterAll(() => discard(module))

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-lock-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const start = (directory: string) =>
  Effect.acquireRelease(
    Effect.sync(() => run(module, [directory])),
    (child) => Effect.promise(child.kill)
  )

const said = (child: { readonly line: () => Promise<string | undefined> }) => Effect.promise(child.line)

describe("The data directory's lock", () => {
  it.scopedLive("refuses a second process, naming the first one's id, and changes nothing", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const first = yield* start(directory)
      expect(yield* said(first)).toBe("held")
      yield* Effect.sleep("1200 millis")
      const before = Fs.readdirSync(directory)
      const changed = Fs.statSync(directory).mtimeMs

      const refusal = yield* Effect.flip(lockDirectory(directory))

      expect(refusal._tag).toBe("DataDirectoryLocked")
      expect(refusal.message).toContain(`process ${first.process.pid}`)
      expect(Fs.readdirSync(directory)).toEqual(before)
      expect(Fs.statSync(directory).mtimeMs).toBe(changed)
      yield* Effect.promise(first.kill)
    })
  )

  it.scopedLive("is free again after kill -9, at once", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const first = yield* start(directory)
      expect(yield* said(first)).toBe("held")
      yield* Effect.promise(first.kill)
      expect(Fs.readdirSync(directory)).toHaveLength(1)

      yield* lockDirectory(directory)

      expect(Fs.readdirSync(directory)).toHaveLength(1)
    })
  )

  it.scopedLive(
    "has exactly one holder when many processes start at the same time after one died",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporary
        for (let round = 0; round < 2; round++) {
          const children = yield* Effect.all(Array.from({ length: 5 }, () => start(directory)))
          const answers = yield* Effect.all(children.map(said), { concurrency: "unbounded" })
          expect(answers.filter((answer) => answer === "held")).toHaveLength(1)
          expect(answers.filter((answer) => answer?.includes("is in use by process"))).toHaveLength(4)
          yield* Effect.promise(() => Promise.all(children.map((child) => child.kill())))
        }
      }),
    60_000
  )

  it.scopedLive("has exactly one holder when many processes look before any has claimed it", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 3; round++) {
        const directory = yield* temporary
        const starters = Array.from({ length: 5 }, () => Effect.exit(lockDirectory(directory)))
        const exits = yield* Effect.all(starters, { concurrency: "unbounded" })
        expect(exits.filter(Exit.isSuccess)).toHaveLength(1)
      }
    })
  )

  it.scopedLive("is not held by a process that only has the id of a dead holder", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const scope = yield* Scope.make()
      yield* Scope.extend(lockDirectory(directory), scope)
      const [mine = ""] = Fs.readdirSync(directory)
      yield* Scope.close(scope, Exit.void)
      expect(Fs.readdirSync(directory)).toEqual([])
      const [kind, pid, , ...rest] = mine.split(".")
      Fs.writeFileSync(Path.join(directory, [kind, pid, "1", ...rest].join(".")), "")

      yield* lockDirectory(directory)

      expect(Fs.readdirSync(directory)).toHaveLength(1)
    })
  )

  it.scopedLive(
    "is held by a process of another container as long as its heartbeat continues",
    () =>
      Effect.gen(function* () {
        const directory = yield* temporary
        const foreign = Path.join(directory, "lock.1.77.ffffffffffffffff.1000.abc")
        Fs.writeFileSync(foreign, "")
        const beating = yield* Effect.sync(() =>
          Fs.utimesSync(foreign, Date.now() / 1_000, Date.now() / 1_000)
        ).pipe(Effect.delay("500 millis"), Effect.forever, Effect.fork)
        expect((yield* Effect.flip(lockDirectory(directory)))._tag).toBe("DataDirectoryLocked")
        yield* Fiber.interrupt(beating)
        yield* lockDirectory(directory)
        expect(Fs.existsSync(foreign)).toBe(false)
      }),
    30_000
  )

  it.scopedLive("fails with the reason when the directory cannot be created", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const file = Path.join(directory, "file")
      Fs.writeFileSync(file, "")
      expect((yield* Effect.flip(lockDirectory(Path.join(file, "data"))))._tag).toBe("DataDirectoryUnusable")
    })
  )
})
