/** When the next snapshot is due, and when the oldest one is removed. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import { vi } from "vitest"
import * as Snapshots from "../../src/app/backup/Snapshots.ts"
import { fromRecord } from "../../src/app/config/Config.ts"
import { TestDatabase } from "../TestDatabase.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-snapshots-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

it.scoped("An interval of months is waited for by the day: a longer timer would never fire", () =>
  Effect.gen(function* () {
    const root = yield* folder
    const settings = yield* fromRecord(
      {
        SPOKE_DATA_DIR: root,
        SPOKE_SNAPSHOT_DIR: Path.join(root, "copies"),
        SPOKE_SNAPSHOT_INTERVAL: "60 days"
      },
      false
    )
    // The test's clock begins there.
    Fs.mkdirSync(Path.join(root, "copies/1970-01-01T00-00-00Z"), { recursive: true })
    yield* Snapshots.schedule(settings)
    /** Until when it sleeps, in milliseconds. Files are read meanwhile. */
    const sleeping = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void))).pipe(
      Effect.zipRight(TestClock.sleeps()),
      Effect.repeat({ until: Chunk.isNonEmpty })
    )
    for (const day of [1, 2, 3]) {
      expect(Chunk.toReadonlyArray(yield* sleeping)).toEqual([Duration.toMillis(Duration.days(day))])
      yield* TestClock.adjust("1 day")
    }
    expect(Fs.readdirSync(Path.join(root, "copies"))).toHaveLength(1)
  }).pipe(Effect.provide(TestDatabase), Effect.asVoid)
)

it.scoped("A copy of the future, of a clock that was ahead, does not delay the next one", () =>
  Effect.gen(function* () {
    const root = yield* folder
    const copies = Path.join(root, "copies")
    const settings = yield* fromRecord(
      { SPOKE_DATA_DIR: root, SPOKE_SNAPSHOT_DIR: copies, SPOKE_SNAPSHOT_INTERVAL: "2 days" },
      false
    )
    Fs.mkdirSync(Path.join(copies, "2040-01-01T00-00-00Z"), { recursive: true })
    Fs.mkdirSync(Path.join(root, "database"))
    yield* Snapshots.schedule(settings)
    // Files are written meanwhile, by the real clock.
    yield* Effect.promise(() =>
      vi.waitFor(() => expect(Fs.readdirSync(copies)).toContain("1970-01-01T00-00-00Z"), { timeout: 20_000 })
    )
  }).pipe(Effect.provide(TestDatabase), Effect.asVoid)
)

it.scoped("Copies of the future, of a clock that was ahead, are removed before the newest ones", () =>
  Effect.gen(function* () {
    const root = yield* folder
    const copies = Path.join(root, "copies")
    for (const day of ["01", "02", "03"]) {
      Fs.mkdirSync(Path.join(copies, `2040-01-${day}T00-00-00Z`), { recursive: true })
    }
    Fs.mkdirSync(Path.join(root, "database"))
    for (let day = 0; day < 4; day++) {
      yield* Snapshots.take(root, { folder: copies, kept: 3 })
      yield* TestClock.adjust("1 day")
    }
    expect(Fs.readdirSync(copies).toSorted()).toEqual([
      "1970-01-02T00-00-00Z",
      "1970-01-03T00-00-00Z",
      "1970-01-04T00-00-00Z"
    ])
  }).pipe(Effect.provide(TestDatabase), Effect.asVoid)
)

it.scoped("A copy is on the disk before the oldest one is removed", () =>
  Effect.gen(function* () {
    const root = yield* folder
    const copies = Path.join(root, "copies")
    const oldest = Path.join(copies, "1969-01-01T00-00-00Z")
    const files = ["database/PG_VERSION", "database/base/1", "artifacts/00/one", "secrets.json"]
    Fs.mkdirSync(oldest, { recursive: true })
    for (const file of files) {
      Fs.mkdirSync(Path.join(root, Path.dirname(file)), { recursive: true })
      Fs.writeFileSync(Path.join(root, file), file)
    }
    const handle = yield* Effect.promise(() => Fs.promises.open(root))
    yield* Effect.promise(() => handle.close())
    const { sync } = handle
    /** What was made durable, while the oldest copy was there. */
    const durable = new Set<number>()
    const spy = vi.spyOn(Object.getPrototypeOf(handle), "sync").mockImplementation(function (
      this: Fs.promises.FileHandle
    ) {
      if (Fs.existsSync(oldest)) durable.add(Fs.fstatSync(this.fd).ino)
      return sync.call(this)
    })
    const target = yield* Snapshots.take(root, { folder: copies, kept: 1 }).pipe(
      Effect.ensuring(Effect.sync(() => spy.mockRestore()))
    )
    expect(Fs.readdirSync(copies)).toEqual([Path.basename(target)])
    const copied = Fs.readdirSync(target, { recursive: true, encoding: "utf8" })
    expect(copied.length).toBe(files.length + 4)
    const places = [copies, target, ...copied.map((name) => Path.join(target, name))]
    const numbers = places.map((place) => Fs.statSync(place).ino)
    expect([...durable].toSorted()).toEqual(numbers.toSorted())
  }).pipe(Effect.provide(TestDatabase), Effect.asVoid)
)
