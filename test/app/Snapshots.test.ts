/** When the next snapshot is due. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
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
    yield* Snapshots.keep(settings)
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
