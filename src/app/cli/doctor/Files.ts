/** Checks of `spoke doctor` for originals, disk space and file permissions of secrets. */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ArtifactStore, ArtifactStoreError } from "../../../capabilities/ArtifactStore.ts"
import type { Settings } from "../../config/Config.ts"
import { artifactStore } from "../../Capabilities.ts"
import * as Package from "../../Package.ts"
import { type Finding, ok, answerTimeout, problem, warning } from "./Finding.ts"
import { MiB } from "../../../domain/Bytes.ts"

/** Stores, reads and removes a few random bytes. */
const probeStore = Effect.gen(function* () {
  const store = yield* ArtifactStore
  const bytes = randomBytes(32)
  yield* Effect.acquireUseRelease(
    store.put(bytes),
    (ref) =>
      Effect.filterOrFail(
        store.get(ref),
        (found) => Option.isSome(found) && bytes.equals(found.value),
        () => new ArtifactStoreError({ message: "The object that was just stored is missing." })
      ),
    (ref) => Effect.ignore(store.remove(ref))
  )
})

/** True before the first start, when the data directory does not exist. A check must not create it. */
const isFirstStart = ({ artifacts, dataDir }: Settings): boolean =>
  artifacts === null && !fs.existsSync(dataDir)

export const checkArtifacts = (settings: Settings) => {
  const where = settings.artifacts === null ? "the data directory" : `bucket ${settings.artifacts.bucket}`
  if (isFirstStart(settings)) return Effect.succeed(ok("originals", "the first start creates their folder"))
  return probeStore.pipe(
    Effect.as(ok("originals", `stored in ${where}, which accepts, returns and removes them`)),
    Effect.provide(artifactStore(settings)),
    Effect.timeoutFail({
      duration: answerTimeout,
      onTimeout: () => new ArtifactStoreError({ message: "No answer in time." })
    }),
    Effect.catchAll(({ message }) => Effect.succeed(problem("originals", `${where}: ${message}`)))
  )
}

/** Minimum free bytes. */
const minFreeBytes = { warning: 1_024 * MiB, problem: 100 * MiB }

export const diskFinding = (free: number): Finding => {
  const text = `${Math.floor(free / MiB)} MiB are free where the data directory is`
  if (free >= minFreeBytes.warning) return ok("disk", text)
  return (free >= minFreeBytes.problem ? warning : problem)("disk", `${text}: make room`)
}

const nearestExisting = (folder: string): string =>
  fs.existsSync(folder) || path.dirname(folder) === folder ? folder : nearestExisting(path.dirname(folder))

const isWritable = (folder: string): boolean => {
  try {
    fs.accessSync(folder, fs.constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** A server with its own database, bucket and secrets writes nothing to this disk. */
const checkDisk = ({ artifacts, database, dataDir }: Settings): ReadonlyArray<Finding> => {
  if (artifacts !== null && database !== null) return []
  const folder = nearestExisting(dataDir)
  if (!isWritable(folder)) return [problem("disk", `${folder} cannot be written: see SPOKE_DATA_DIR`)]
  const { bavail, bsize } = fs.statfsSync(folder)
  return [diskFinding(bavail * bsize)]
}

const privateFiles = ["secrets.json", "credentials.json", "database"]
const otherUsersMode = 0o077

/** Files that were copied or restored manually are often readable by every user. */
const checkModes = ({ dataDir }: Settings): ReadonlyArray<Finding> => {
  const existing = privateFiles.map((name) => path.join(dataDir, name)).filter((file) => fs.existsSync(file))
  const readable = existing.filter((file) => (fs.statSync(file).mode & otherUsersMode) !== 0)
  if (existing.length === 0) return []
  return readable.length === 0
    ? [ok("file modes", "only their owner may read database and secrets")]
    : [problem("file modes", `others may read ${readable.join(", ")}: chmod -R go= ${dataDir}`)]
}

const pageFiles = ["index.html", "widget.js"]

const checkPages = (): Finding =>
  pageFiles.every((name) => fs.existsSync(path.join(Package.ui, name)))
    ? ok("hosted pages", "are built")
    : problem("hosted pages", "are not built: run npm run build in a checkout, or install the package again")

export const checkFiles = (settings: Settings) =>
  Effect.sync(() => [...checkDisk(settings), ...checkModes(settings), checkPages()])
