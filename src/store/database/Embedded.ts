/** PostgreSQL inside this process (PGlite): opening, first creation, closing. */
import type { PGlite, PGliteOptions } from "@electric-sql/pglite"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import * as v8 from "node:v8"
import * as Panic from "./Panic.ts"

/** The database cannot be opened or reached. `message` is short and names neither credentials nor address. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface EngineOptions {
  /** A gzipped tar of a migrated data directory: a fresh database starts from it in half the time of `initdb`. */
  readonly seed?: string
  /** Load the pgvector extension. */
  readonly vector?: boolean
}

/** The engine's own messages can carry a whole minified source line. */
const unavailable = (what: string) => (cause: unknown) => {
  const [line = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n")
  return new DatabaseUnavailable({ message: `${what}: ${line.slice(0, 200)}` })
}

/**
 * For one connection in a process that others share: the defaults would hold 128 MB of pages that the operating system
 * keeps anyway, and up to 1 GB of log that nobody reads any more.
 */
const settings = [
  "shared_buffers=32MB",
  "wal_buffers=1MB",
  "max_connections=20",
  "min_wal_size=32MB",
  "max_wal_size=96MB"
].flatMap((setting) => ["-c", setting])

/**
 * WebAssembly is optimised, on threads beside ours, once a function has run this much. The engine's start runs thousands
 * of functions past V8's own budget, which costs more than the whole rest of the start; those of a busy service come
 * past this one soon enough.
 */
const optimiseLater = Effect.sync(() => v8.setFlagsFromString("--wasm-tiering-budget=100000000"))

const create = (options: PGliteOptions, vector: boolean) =>
  Effect.tryPromise({
    try: async () => {
      const { PGlite } = await import("@electric-sql/pglite")
      const engine = { ...options, startParams: [...PGlite.defaultStartParams, ...settings] }
      if (!vector) return await PGlite.create(engine)
      const pgvector = await import("@electric-sql/pglite-pgvector")
      return await PGlite.create({ ...engine, extensions: { vector: pgvector.vector } })
    },
    catch: unavailable("The embedded database does not open")
  })

const open = (
  options: PGliteOptions,
  vector: boolean
): Effect.Effect<PGlite, DatabaseUnavailable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      yield* optimiseLater
      const db: PGlite = yield* create(options, vector)
      const fork = Runtime.runFork(yield* Effect.runtime<never>())
      const told = Effect.zipRight(
        Effect.logFatal("The embedded database has ended: is its disk full?"),
        yield* Panic.WhenEnded
      )
      return { db, ...Panic.guard(db, () => void fork(told)) }
    }),
    ({ db, isOver }) =>
      Effect.suspend(() =>
        isOver()
          ? Effect.void
          : Effect.ignore(
              Effect.timeout(
                Effect.promise(() => db.close()),
                "10 seconds"
              )
            )
      )
  ).pipe(Effect.map(({ db }) => db))

/** The archive as the engine takes it; none when the build made none. */
const readSeed = (seed: string | undefined) =>
  seed === undefined
    ? Effect.succeedNone
    : Effect.tryPromise(() => Fs.readFile(seed)).pipe(
        Effect.map((bytes) => new Blob([bytes], { type: "application/x-gzip" })),
        Effect.option
      )

const withSeed = (options: PGliteOptions, seed: Option.Option<Blob>): PGliteOptions =>
  Option.match(seed, { onNone: () => options, onSome: (loadDataDir) => ({ ...options, loadDataDir }) })

const files = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: unavailable("The embedded database's directory cannot be prepared") })

const exists = (path: string) => Effect.isSuccess(Effect.tryPromise(() => Fs.stat(path)))

/** Makes a created or removed entry outlive a power cut. */
const syncDirectory = (directory: string) =>
  files(async () => {
    const handle = await Fs.open(directory, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  })

const restrict = (directory: string): Effect.Effect<void, DatabaseUnavailable> =>
  files(async () => {
    const entries = await Fs.readdir(directory, { withFileTypes: true, recursive: true })
    await Fs.chmod(directory, 0o700)
    for (const entry of entries) {
      const mode = entry.isDirectory() ? 0o700 : 0o600
      if (!entry.isSymbolicLink()) await Fs.chmod(Path.join(entry.parentPath, entry.name), mode)
    }
  })

/**
 * Opens the database in `<dataDir>/database`, creating it when there is none. The caller holds the directory's lock.
 * A mark stands beside the database while it is being created, so that a creation cut short is begun anew; what it left
 * is moved aside, never deleted.
 */
export const openDirectory = (dataDir: string, options: EngineOptions) =>
  Effect.gen(function* () {
    const directory = Path.join(dataDir, "database")
    const mark = Path.join(dataDir, "database.creating")
    if (yield* exists(mark)) {
      const now = yield* Clock.currentTimeMillis
      if (yield* exists(directory)) yield* files(() => Fs.rename(directory, `${directory}.unfinished.${now}`))
    }
    const found = yield* exists(Path.join(directory, "PG_VERSION"))
    if (found) return yield* open({ dataDir: directory }, options.vector === true)

    yield* files(() => Fs.writeFile(mark, "", { mode: 0o600 }))
    yield* files(() => Fs.mkdir(directory, { recursive: true, mode: 0o700 }))
    yield* syncDirectory(dataDir)
    const seed = yield* readSeed(options.seed)
    const db = yield* open(withSeed({ dataDir: directory }, seed), options.vector === true)
    yield* restrict(directory)
    yield* files(() => Fs.rm(mark))
    yield* syncDirectory(dataDir)
    return db
  })

/** A database that is gone with the scope, from `seed` when given. */
export const openMemory = (options: EngineOptions) =>
  Effect.flatMap(readSeed(options.seed), (seed) => open(withSeed({}, seed), options.vector === true))
