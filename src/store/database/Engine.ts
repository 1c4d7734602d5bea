/**
 * The embedded engine (PGlite) as connections use it: messages of PostgreSQL's protocol in, its answers out. It works on the
 * thread that calls it; the service gives it one of its own (EngineThread), so that a statement keeps no request waiting.
 *
 * Knows nothing of Effect: it is all that the engine's thread loads, at every start.
 */
import type { PGlite } from "@electric-sql/pglite"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import { isError } from "../../domain/Thrown.ts"

/** How an engine is opened; plain data, which crosses to a thread. */
export interface EngineOpening {
  /** Directory of its files; null for an in-memory database. */
  readonly directory: string | null
  /** A gzipped tar of a data directory, unpacked into a directory that has none. */
  readonly seed: string | null
  /** Load the pgvector extension. */
  readonly vector: boolean
}

export interface Engine {
  /**
   * Hands over messages of the protocol, the last of which is answered, and resolves to all that the engine says to them.
   * What is asked first is answered first.
   */
  readonly ask: (request: Uint8Array) => Promise<Uint8Array>
}

/**
 * For one connection in a process that others share: the defaults would hold 128 MB of pages that the operating system
 * keeps anyway, and up to 1 GB of log that nobody reads any more (EmbeddedMaintenance). ANALYZE holds everybody else up, so it reads a tenth
 * of what it would.
 */
const settings = [
  "shared_buffers=32MB",
  "wal_buffers=1MB",
  "max_connections=20",
  "min_wal_size=32MB",
  "max_wal_size=96MB",
  "default_statistics_target=10"
].flatMap((setting) => ["-c", setting])

/** What the engine's files throw is no `Error`, but a number of WASI's. */
const reasons: ReadonlyMap<unknown, string> = new Map([
  [2, "permission denied"],
  [29, "input/output error"],
  [51, "no space left on the device"],
  [63, "operation not permitted"],
  [69, "read-only file system"]
])

/** Why the engine does not open, in words. */
export const messageOf = (error: unknown): string => {
  if (isError(error)) return error.message
  if (typeof error !== "object" || error === null || !("errno" in error)) return String(error)
  return reasons.get(error.errno) ?? `error ${String(error.errno)} of its files`
}

/** None when the build made none. */
const readSeed = async (seed: string) => {
  const bytes = await Fs.readFile(seed).catch(() => null)
  return bytes === null ? {} : { loadDataDir: new Blob([bytes], { type: "application/x-gzip" }) }
}

/**
 * Where PostgreSQL notes who uses a directory. The engine notes what means nothing outside of it, and takes no notice of what
 * another has noted, but neither it nor a server opens a directory whose note it cannot read, and both leave it as it is.
 */
const noteOf = (directory: string) => Path.join(directory, "postmaster.pid")

const note = () =>
  `Spoke uses this database, process ${process.pid}: opened a second time, it would be damaged.\n`

/** The caller holds the directory's lock: what is noted there is what a dead process left. */
export const openGlite = async (opening: EngineOpening): Promise<PGlite> => {
  const { directory } = opening
  if (directory === null) return await open(opening)
  await Fs.rm(noteOf(directory), { force: true })
  const db = await open(opening)
  await Fs.writeFile(noteOf(directory), note(), { mode: 0o600 })
  return db
}

const open = async ({ directory, seed, vector }: EngineOpening): Promise<PGlite> => {
  // Loaded here and not above, so that a process on a server never reads the embedded engine.
  const { PGlite } = await import("@electric-sql/pglite")
  const options = {
    ...(directory !== null && { dataDir: directory }),
    ...(seed !== null && (await readSeed(seed))),
    startParams: [...PGlite.defaultStartParams, ...settings]
  }
  if (!vector) return await PGlite.create(options)
  const pgvector = await import("@electric-sql/pglite-pgvector")
  return await PGlite.create({ ...options, extensions: { vector: pgvector.vector } })
}

/** Said of the statement that ended it and of every one from then on, with the code by which a server says that it crashed. */
export const crashed = () => Object.assign(new Error("The embedded database has ended."), { code: "57P02" })

const errorMessage = "E".charCodeAt(0)

/**
 * True when a message of `answer` (a type, the length of the rest, and its fields) is an error that ends a server. A disk
 * without room for the log is such an end. PGlite goes on after it, and the next statement waits, on the engine's one thread,
 * for a lock whose holder is gone: so nothing is asked after it. Everything committed is found again by the process
 * that opens the directory next.
 */
const panics = (answer: Uint8Array): boolean => {
  const view = new DataView(answer.buffer, answer.byteOffset, answer.byteLength)
  for (let at = 0; at + 5 <= answer.length;) {
    const end = at + 1 + Math.max(4, view.getInt32(at + 1))
    if (answer[at] === errorMessage) {
      const fields = Buffer.from(answer.subarray(at + 5, end)).toString("latin1")
      if (fields.split("\0").includes("VPANIC")) return true
    }
    at = end
  }
  return false
}

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Its answers are in memory of their own, which may move to another thread. */
export interface GliteEngine extends Engine {
  readonly ask: (request: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>
  readonly isOver: () => boolean
}

/** `whenEnded` is called once, when the engine has ended by itself; then it must not even be closed. */
export const engineOf = (db: PGlite, whenEnded: () => void): GliteEngine => {
  let over = false
  const end = () => {
    if (!over) whenEnded()
    over = true
    return crashed()
  }
  const ask: GliteEngine["ask"] = async (request) => {
    if (over) throw crashed()
    const parts: Array<Uint8Array> = []
    try {
      // The engine's memory is its own again after the call.
      await db.execProtocolRawStream(request, { onRawData: (part) => void parts.push(part.slice()) })
    } catch (error) {
      // The engine itself broke: its memory may be in any state.
      if (isError(error) && error.name === "RuntimeError") throw end()
      throw error
    }
    const answer = joined(parts)
    if (panics(answer)) throw end()
    return answer
  }
  return { ask, isOver: () => over }
}
