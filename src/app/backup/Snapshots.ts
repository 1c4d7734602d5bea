/**
 * Scheduled copies of an embedded store. Each copy is a complete data directory on which a server can be started. The
 * database is copied after a checkpoint while no statement runs, so that its files are consistent; originals never
 * change once they are written. File systems that share blocks between copies need almost no space for one.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { unfinishedFolder } from "../../capabilities/ArtifactStore/Disk.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { codeOf } from "../../domain/ThrownErrors.ts"
import type { Settings } from "../config/Settings.ts"
import { sync } from "../../store/database/Folder.ts"

/** A snapshot is named after its time in UTC, so names sort by time. */
const nameOf = (at: DateTime.Utc) => DateTime.formatIso(at).slice(0, 19).replaceAll(":", "-") + "Z"
const snapshotName = /^(\d{4}-\d{2}-\d{2}T)(\d{2})-(\d{2})-(\d{2})Z$/

/** Pause after a failure, such as a full disk. */
const retryDelay = Duration.minutes(10)

/** Longest sleep. A timer of more than 2^31 - 1 milliseconds (24.8 days) never fires. */
const maxSleep = Duration.days(1)

class SnapshotFailed extends Schema.TaggedError<SnapshotFailed>()("SnapshotFailed", {
  message: Schema.String,
  /** True where a file was missing. */
  isGone: Schema.Boolean
}) {}

const attempt = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      new SnapshotFailed({
        message: `${what} failed${codeOf(cause) && ` (${codeOf(cause)})`}.`,
        isGone: codeOf(cause) === "ENOENT"
      })
  })

/** Copies a folder without uploads that are being written. Files may be removed meanwhile: the copy then goes on. */
const copyFolder = (from: string, to: string) =>
  attempt(`Copying ${from}`, () =>
    fs.cp(from, to, {
      recursive: true,
      mode: constants.COPYFILE_FICLONE,
      preserveTimestamps: true,
      filter: (file) => file !== path.join(from, unfinishedFolder)
    })
  ).pipe(Effect.retry({ times: 10, while: ({ isGone }) => isGone }))

/** Files that are made durable at a time. */
const maxConcurrentSyncs = 16

/** Makes everything in a folder durable. Otherwise a power failure could leave a copy of empty files. */
const syncFolder = (folder: string) =>
  Effect.gen(function* () {
    const names = yield* attempt(`Reading ${folder}`, () => fs.readdir(folder, { recursive: true }))
    yield* Effect.forEach(
      ["", ...names],
      (name) => attempt(`Syncing ${name}`, () => sync(path.join(folder, name))),
      { concurrency: maxConcurrentSyncs, discard: true }
    )
  })

const exists = (file: string) =>
  Effect.promise(() =>
    fs.access(file).then(
      () => true,
      () => false
    )
  )

/** Times of the copies in `folder`, oldest first. */
const listSnapshots = (folder: string) =>
  attempt(`Reading ${folder}`, async () => {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    return (await fs.readdir(folder)).filter((name) => snapshotName.test(name)).toSorted()
  })

/** Removes incomplete copies of a process that died. */
const removePartial = (folder: string) =>
  attempt(`Tidying ${folder}`, async () => {
    for (const name of await fs.readdir(folder)) {
      if (name.endsWith(".partial")) await fs.rm(path.join(folder, name), { recursive: true })
    }
  })

const timeOf = (name: string) => DateTime.make(name.replace(snapshotName, "$1$2:$3:$4Z"))

/**
 * Files beside the database that a start needs. `credentials.json` belongs to the address of the running server and is
 * left out.
 */
const extraFiles = ["artifacts", "secrets.json"] as const

/** Makes a copy now, and removes the oldest ones above the maximum. Returns its folder. */
export const take = Effect.fn("Snapshots.take")(function* (
  dataDir: string,
  { folder, kept }: { readonly folder: string; readonly kept: number }
) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* listSnapshots(folder)
  yield* removePartial(folder)
  const name = nameOf(yield* DateTime.now)
  const target = path.join(folder, name)
  // Copies of the future were made before all others, while the clock was ahead.
  const oldestFirst = [...before.filter((other) => other > name), ...before.filter((other) => other <= name)]
  const partial = `${target}.partial`
  const began = yield* monotonicMillis
  yield* Effect.gen(function* () {
    yield* attempt(`Making ${partial}`, () => fs.mkdir(partial, { mode: 0o700 }))
    // The transaction holds the only connection, so no other statement can write.
    yield* sql.withTransaction(
      Effect.zipRight(
        sql`checkpoint`,
        copyFolder(path.join(dataDir, "database"), path.join(partial, "database"))
      )
    )
    const heldMillis = (yield* monotonicMillis) - began
    for (const file of extraFiles) {
      const from = path.join(dataDir, file)
      if (yield* exists(from)) yield* copyFolder(from, path.join(partial, file))
    }
    yield* syncFolder(partial)
    yield* attempt(`Naming ${target}`, () => fs.rename(partial, target))
    // Before older copies are removed.
    yield* attempt(`Syncing ${folder}`, () => sync(folder))
    yield* Effect.logInfo("A snapshot was written", {
      target,
      statementsWaitedMillis: Math.round(heldMillis)
    })
  }).pipe(Effect.onExit(() => Effect.promise(() => fs.rm(partial, { recursive: true, force: true }))))
  for (const old of oldestFirst.slice(0, Math.max(0, before.length + 1 - kept))) {
    yield* attempt(`Removing ${old}`, () => fs.rm(path.join(folder, old), { recursive: true }))
  }
  return target
}, forEveryTenant("archive"))

/** Time until the next copy is due, by the newest one. One of the future was made while the clock was ahead. */
const timeUntilDue = (folder: string, every: Duration.Duration) =>
  Effect.gen(function* () {
    const now = yield* DateTime.now
    const all = (yield* listSnapshots(folder)).flatMap((name) => Option.toArray(timeOf(name)))
    const newest = all.findLast((at) => DateTime.lessThanOrEqualTo(at, now))
    if (newest === undefined) return Duration.zero
    return Duration.millis(Math.max(0, Duration.toMillis(every) - DateTime.distance(newest, now)))
  })

/** Makes copies until the scope closes, if the settings ask for them. */
export const schedule = ({ dataDir, database, snapshots }: Settings) => {
  if (snapshots === null || database !== null) return Effect.void
  const next = Effect.gen(function* () {
    const wait = yield* timeUntilDue(snapshots.folder, snapshots.every)
    yield* Effect.sleep(Duration.min(wait, maxSleep))
    if (Duration.greaterThan(wait, maxSleep)) return
    yield* take(dataDir, snapshots)
  })
  return next.pipe(
    Effect.catchAllCause((cause) =>
      Effect.zipRight(Effect.logError("A snapshot could not be written", cause), Effect.sleep(retryDelay))
    ),
    Effect.repeat(Schedule.forever),
    Effect.forkScoped,
    Effect.asVoid
  )
}
