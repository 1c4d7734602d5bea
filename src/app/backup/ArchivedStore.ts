/** Checks before an export or an import: whether the store exists, and whether it fits the archive. */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Tables from "../../store/archive/Tables.ts"
import type { Settings } from "../config/Config.ts"
import type * as Manifest from "./Manifest.ts"
import { ArchiveError } from "./PartFile.ts"

/** Counts of what was exported or imported. */
export interface Totals {
  readonly rows: number
  readonly originals: number
  /** Originals that were removed during the export. */
  readonly missing: number
}

export const reportCount = (what: string, count: number) =>
  count === 0 ? Effect.void : Console.error(`${what.padEnd(24)} ${count}`)

export const isEmbedded = ({ database: server }: Settings) => server === null

export const noStore = (settings: Settings) =>
  new ArchiveError({
    message: isEmbedded(settings)
      ? `There is no database in ${settings.dataDir}. SPOKE_DATA_DIR sets the place.`
      : "The database has no tables of Spoke."
  })

/** Opening a missing embedded database would create it. */
export const requireStore = (settings: Settings) =>
  isEmbedded(settings) && !fs.existsSync(path.join(settings.dataDir, "database", "PG_VERSION"))
    ? noStore(settings)
    : Effect.void

/** The settings with at least `connections` database connections. The embedded database has one. */
export const withConnections = (settings: Settings, connections: number): Settings =>
  settings.database === null
    ? settings
    : {
        ...settings,
        database: {
          ...settings.database,
          maxConnections: Math.max(settings.database.maxConnections, connections)
        }
      }

export const wrongSecret = (settings: Settings) =>
  new ArchiveError({
    message:
      "The archive was written under another master secret, without which its channels, tools and keys cannot be read. " +
      (isEmbedded(settings)
        ? "Set SPOKE_SECRET to it, put the old secrets.json into the new data directory, or export again with --with-secret."
        : "Set SPOKE_SECRET to it; an embedded store keeps its own as `secret` in secrets.json.")
  })

export const checkMigrations = ({ migrations, version }: Manifest.Header) =>
  Effect.gen(function* () {
    const applied = yield* Tables.migrationsApplied
    if (applied.join() === migrations.join()) return
    return yield* new ArchiveError({
      message:
        `The archive was written by Spoke ${version} with ${migrations.length} migrations, this version has ` +
        `${applied.length}. Import it with that version, then upgrade.`
    })
  })
