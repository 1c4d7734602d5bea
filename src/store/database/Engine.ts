/**
 * The embedded engine (PGlite), as connections use it: requests of PostgreSQL's protocol in, answers out. It runs on
 * the calling thread. The service gives it a separate thread (EngineThread), so that a statement does not block
 * requests.
 *
 * This module does not use Effect, because the engine's thread loads nothing else at each start.
 */
import type { PGlite } from "@electric-sql/pglite"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import { isError } from "../../domain/ThrownErrors.ts"

/** How an engine is opened. Plain data, which can be sent to a thread. */
export interface EngineOpening {
  /** Directory of its files; null for an in-memory database. */
  readonly directory: string | null
  /** A gzipped tar of a data directory, unpacked into a directory that has none. */
  readonly seed: string | null
  /** Whether to load the pgvector extension. */
  readonly vector: boolean
}

export interface Engine {
  /**
   * Sends messages of the protocol, the last of which has an answer, and resolves to the engine's complete answer.
   * Requests are answered in order.
   */
  readonly ask: (request: Uint8Array) => Promise<Uint8Array>
}

/**
 * Settings for a single connection. The defaults would use 128 MB for pages that the operating system caches anyway,
 * and up to 1 GB of log that nobody reads (EmbeddedMaintenance). ANALYZE blocks everything else, so it samples a tenth
 * of the default.
 */
const settings = [
  "shared_buffers=32MB",
  "wal_buffers=1MB",
  "max_connections=20",
  "min_wal_size=32MB",
  "max_wal_size=96MB",
  "default_statistics_target=10"
].flatMap((setting) => ["-c", setting])

/** The engine's file functions throw a WASI error number instead of an `Error`. */
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

/** Null when the build made no seed. */
const readSeed = async (seed: string) => {
  const bytes = await Fs.readFile(seed).catch(() => null)
  return bytes === null ? {} : { loadDataDir: new Blob([bytes], { type: "application/x-gzip" }) }
}

/**
 * The file in which PostgreSQL records the process that uses a directory. The engine writes one that is meaningless
 * outside it, and ignores existing ones. But neither the engine nor a server opens a directory with an unreadable file,
 * and neither removes it.
 */
const pidFileOf = (directory: string) => Path.join(directory, "postmaster.pid")

const pidFileText = () =>
  `Spoke uses this database, process ${process.pid}: opened a second time, it would be damaged.\n`

/** The caller holds the directory's lock, so an existing file is from a dead process. */
export const openPGlite = async (opening: EngineOpening): Promise<PGlite> => {
  const { directory } = opening
  if (directory === null) return await open(opening)
  await Fs.rm(pidFileOf(directory), { force: true })
  const db = await open(opening)
  await Fs.writeFile(pidFileOf(directory), pidFileText(), { mode: 0o600 })
  return db
}

const open = async ({ directory, seed, vector }: EngineOpening): Promise<PGlite> => {
  // Imported here, so that a process with a PostgreSQL server never loads the embedded engine.
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

/** Error of the statement that ended the engine and of all later ones, with the SQLSTATE of a crashed server. */
export const crashed = () => Object.assign(new Error("The embedded database has ended."), { code: "57P02" })

const errorMessage = "E".charCodeAt(0)

/**
 * True when `answer`, a sequence of messages (type, length, fields), contains a PANIC: an error that ends a server,
 * such as a full disk for the log. PGlite continues after it, and the next statement would wait forever for a lock
 * whose holder is gone. So no further request is sent. The process that opens the directory next finds everything that
 * was committed.
 */
const hasPanic = (answer: Uint8Array): boolean => {
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

const concatenate = (parts: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Its answers have their own memory, which can be transferred to another thread. */
export interface PGliteEngine extends Engine {
  readonly ask: (request: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>
  readonly hasEnded: () => boolean
}

/** `onEnded` is called once, when the engine has ended by itself. It must not be closed then. */
export const engineOf = (db: PGlite, onEnded: () => void): PGliteEngine => {
  let ended = false
  const end = () => {
    if (!ended) onEnded()
    ended = true
    return crashed()
  }
  const ask: PGliteEngine["ask"] = async (request) => {
    if (ended) throw crashed()
    const parts: Array<Uint8Array> = []
    try {
      // The engine reuses its buffer after the call, so the part is copied.
      await db.execProtocolRawStream(request, { onRawData: (part) => void parts.push(part.slice()) })
    } catch (error) {
      // The engine crashed. Its memory may be in any state.
      if (isError(error) && error.name === "RuntimeError") throw end()
      throw error
    }
    const answer = concatenate(parts)
    if (hasPanic(answer)) throw end()
    return answer
  }
  return { ask, hasEnded: () => ended }
}
