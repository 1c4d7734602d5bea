/** PostgreSQL inside this process (PGlite): opening, creation, closing. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import * as v8 from "node:v8"
import { type Engine, engineOf, type EngineOpening, messageOf, openPGlite } from "./Engine.ts"
import { openThread } from "./EngineThread.ts"
import { sync } from "./Folder.ts"
import { MiB } from "../../domain/Bytes.ts"

/** The database cannot be opened or reached. `message` is short and contains neither credentials nor address. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface EngineOptions {
  /** A gzipped tar of a migrated data directory. Creating a database from it takes half the time of `initdb`. */
  readonly seed?: string
  /** Whether to load the pgvector extension. */
  readonly vector?: boolean
  /** The built `workers/database.ts`, for a separate thread. Without it, the engine runs on this thread. */
  readonly thread?: URL
}

/** The engine's own messages can contain a whole minified source line. */
const unavailable = (what: string) => (cause: unknown) => {
  const [line = ""] = messageOf(cause).split("\n")
  return new DatabaseUnavailable({ message: `${what}: ${line.slice(0, 200)}` })
}
const openFailed = unavailable("The embedded database does not open")

/** Minimum free bytes: for the log, and for files written at the start. */
const minFreeBytes = 32 * MiB

/** Adds the reason if the disk is full. The engine itself reports only that it did not start. */
const explainFullDisk = (directory: string) => (error: DatabaseUnavailable) =>
  Effect.tryPromise(() => Fs.statfs(directory)).pipe(
    Effect.match({
      onFailure: () => error,
      onSuccess: ({ bavail, bsize }) =>
        bavail * bsize >= minFreeBytes
          ? error
          : new DatabaseUnavailable({
              message: `${error.message}. Only ${Math.floor((bavail * bsize) / MiB)} MiB are free on the disk of ${directory}: make room, and start again.`
            })
    }),
    Effect.flip
  )

/**
 * V8 optimises a WebAssembly function, on background threads, once it has run this much. The engine's start runs
 * thousands of functions past V8's default budget, which costs more than the rest of the start. Functions of a busy
 * service exceed this budget soon anyway.
 */
const delayOptimisation = Effect.sync(() => v8.setFlagsFromString("--wasm-tiering-budget=100000000"))

/** Called with the reason, as a sentence, when the embedded database cannot continue. Default: no action. */
export class OnEngineFailure extends Context.Reference<OnEngineFailure>()("store/database/OnEngineFailure", {
  defaultValue: (): ((reason: string) => Effect.Effect<unknown>) => () => Effect.void
}) {}

/** What to do when the engine ends by itself: report it. */
const onEngineEnd = Effect.map(Effect.runtime<never>(), (runtime) => {
  const reportEnd = Effect.zipRight(
    Effect.logFatal("The embedded database has ended: is its disk full?"),
    Effect.flatMap(OnEngineFailure, (report) =>
      report("The embedded database could not go on and has ended. Make room on its disk, and start again.")
    )
  )
  return () => void Runtime.runFork(runtime)(reportEnd)
})

/** The engine on this thread, and the PGlite instance. */
const openOnThisThread = (opening: EngineOpening) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const onEnded = yield* onEngineEnd
      const db = yield* Effect.tryPromise({ try: () => openPGlite(opening), catch: openFailed })
      return { db, engine: engineOf(db, onEnded) }
    }),
    ({ db, engine }) =>
      Effect.suspend(() =>
        engine.hasEnded()
          ? Effect.void
          : Effect.ignore(
              Effect.timeout(
                Effect.promise(() => db.close()),
                "10 seconds"
              )
            )
      )
  )

const open = (
  opening: EngineOpening,
  thread: URL | undefined
): Effect.Effect<Engine, DatabaseUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    yield* delayOptimisation
    if (thread === undefined) return (yield* openOnThisThread(opening)).engine
    return yield* Effect.mapError(openThread(thread, opening, yield* onEngineEnd), openFailed)
  })

const tryFiles = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: unavailable("The embedded database's directory cannot be prepared") })

const exists = (path: string) => Effect.isSuccess(Effect.tryPromise(() => Fs.stat(path)))

const restrictAccess = (directory: string): Effect.Effect<void, DatabaseUnavailable> =>
  tryFiles(async () => {
    const entries = await Fs.readdir(directory, { withFileTypes: true, recursive: true })
    await Fs.chmod(directory, 0o700)
    for (const entry of entries) {
      const mode = entry.isDirectory() ? 0o700 : 0o600
      if (!entry.isSymbolicLink()) await Fs.chmod(Path.join(entry.parentPath, entry.name), mode)
    }
  })

/**
 * Opens the database in `<dataDir>/database`, creating it when there is none. The caller holds the directory's lock. A
 * marker file exists while the database is being created. If it is found later, creation starts again; the remains are
 * moved aside, never deleted.
 */
export const openDirectory = (dataDir: string, options: EngineOptions) =>
  Effect.gen(function* () {
    const directory = Path.join(dataDir, "database")
    const marker = Path.join(dataDir, "database.creating")
    if (yield* exists(marker)) {
      const now = yield* Clock.currentTimeMillis
      if (yield* exists(directory))
        yield* tryFiles(() => Fs.rename(directory, `${directory}.unfinished.${now}`))
    }
    const opening: EngineOpening = { directory, seed: null, vector: options.vector === true }
    const found = yield* exists(Path.join(directory, "PG_VERSION"))
    if (found) return yield* open(opening, options.thread)

    yield* tryFiles(() => Fs.writeFile(marker, "", { mode: 0o600 }))
    yield* tryFiles(() => Fs.mkdir(directory, { recursive: true, mode: 0o700 }))
    yield* tryFiles(() => sync(dataDir))
    const engine = yield* open({ ...opening, seed: options.seed ?? null }, options.thread)
    yield* restrictAccess(directory)
    yield* tryFiles(() => Fs.rm(marker))
    yield* tryFiles(() => sync(dataDir))
    return engine
  }).pipe(Effect.catchTag("DatabaseUnavailable", explainFullDisk(dataDir)))

const inMemory = ({ seed, vector }: EngineOptions): EngineOpening => ({
  directory: null,
  seed: seed ?? null,
  vector: vector === true
})

/** A database that is removed with the scope, from `seed` when given. */
export const openMemory = (options: EngineOptions) => open(inMemory(options), options.thread)

/** An empty in-memory engine on this thread, and the PGlite instance. */
export const openEmptyPGlite = Effect.zipRight(delayOptimisation, openOnThisThread(inMemory({})))
