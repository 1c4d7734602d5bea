/** Work of the process itself under row level security, on an embedded store. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Snapshots from "../../src/app/backup/Snapshots.ts"
import { fromRecord } from "../../src/app/config/Config.ts"
import * as Embedded from "../../src/app/library/Embedded.ts"
import * as Owner from "../../src/app/library/Owner.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-role-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

it.scopedLive(
  "A library finds its owner, and a snapshot is written",
  () =>
    Effect.gen(function* () {
      const root = yield* folder
      const dataDir = Path.join(root, "data")
      const settings = yield* fromRecord(
        { SPOKE_DATA_DIR: dataDir, SPOKE_TENANT_ROLE: "spoke_tenant" },
        false
      )
      const live = yield* Layer.build(Embedded.layer(settings))
      yield* Effect.gen(function* () {
        const made = yield* Owner.find(settings, undefined)
        expect(yield* Owner.find(settings, undefined)).toEqual(made)
        expect(yield* Owner.find(settings, made.tenantId)).toEqual(made)
        const copy = yield* Snapshots.take(dataDir, { folder: Path.join(root, "copies"), kept: 2 })
        expect(Fs.existsSync(Path.join(copy, "database/PG_VERSION"))).toBe(true)
      }).pipe(Effect.provide(live))
    }),
  120_000
)
