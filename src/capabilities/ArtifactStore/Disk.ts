/**
 * Artifacts as files: `<directory>/<first two digits>/<digest>`. A file gets its name only when all of its bytes are on
 * disk, so a crash leaves the whole artifact or none. Several processes may share the directory.
 */
import { createHash, randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { codeOf } from "../../domain/ThrownErrors.ts"
import { ArtifactStore, ArtifactStoreError, refOf } from "../ArtifactStore.ts"
import { closeAndRemove, removeAbandoned } from "./UnfinishedFiles.ts"
import { makeSpoolLimit } from "./SpoolLimit.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Folder of files that are being written. */
export const unfinishedFolder = "unfinished"

const notWritten = "The artifact could not be written"

const attempt = <A>(failure: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => {
      const code = codeOf(cause)
      return new ArtifactStoreError({ message: `${failure}${code === "" ? "" : ` (${code})`}.` })
    }
  })

/** A new name is durable only when its directory is synced. */
const syncDirectory = async (directory: string) => {
  const handle = await fs.open(directory, "r")
  await handle.sync().finally(() => handle.close())
}

/** Bytes that are hashed at a time: one or two milliseconds. */
const bytesPerHashStep = MiB

/** Reads all bytes into new memory, and computes their address. */
const readAll = async (handle: fs.FileHandle) => {
  const { size } = await handle.stat()
  const bytes = new Uint8Array(size)
  const hash = createHash("sha256")
  let length = 0
  for (;;) {
    const { bytesRead } = await handle.read(bytes, length, Math.min(bytesPerHashStep, size - length), length)
    hash.update(bytes.subarray(length, length + bytesRead))
    length += bytesRead
    if (bytesRead === 0 || length === size) {
      return { bytes, ref: ArtifactRef.make(`sha256:${hash.digest("hex")}`) }
    }
  }
}

const readIfPresent = async (file: string) => {
  try {
    const handle = await fs.open(file, "r")
    try {
      return await readAll(handle)
    } finally {
      await handle.close()
    }
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return null
    throw cause
  }
}

const unlinkIfPresent = async (file: string): Promise<boolean> => {
  try {
    await fs.unlink(file)
    return true
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return false
    throw cause
  }
}

const make = (directory: string) =>
  Effect.gen(function* () {
    const withinSpoolLimit = makeSpoolLimit()
    const unfinished = path.join(directory, unfinishedFolder)
    yield* attempt("The directory of artifacts could not be created", () =>
      fs.mkdir(unfinished, { recursive: true, mode: 0o700 })
    )
    const now = yield* Clock.currentTimeMillis
    yield* attempt("Unfinished files could not be removed", () => removeAbandoned(unfinished, /^/u, now))

    const fileOf = (ref: ArtifactRef) => {
      const digest = ref.slice("sha256:".length)
      return path.join(directory, digest.slice(0, 2), digest)
    }

    const unfinishedFile = Effect.acquireRelease(
      attempt(notWritten, async () => {
        const file = path.join(unfinished, randomUUID())
        return { file, handle: await fs.open(file, "wx", 0o600) }
      }),
      closeAndRemove
    )

    const write = (bytes: Uint8Array, file: string) =>
      Effect.gen(function* () {
        const temporary = yield* unfinishedFile
        yield* attempt(notWritten, async () => {
          await temporary.handle.writeFile(bytes)
          await temporary.handle.sync()
        })
        yield* attempt(notWritten, () => fs.rename(temporary.file, file))
      }).pipe(Effect.scoped)

    /** Calls `write` with the file of `ref`, and returns when its name is on disk. */
    const storeDurably = (
      ref: ArtifactRef,
      write: (file: string) => Effect.Effect<void, ArtifactStoreError>
    ) =>
      Effect.gen(function* () {
        const file = fileOf(ref)
        const parent = path.dirname(file)
        yield* attempt(notWritten, () => fs.mkdir(parent, { recursive: true, mode: 0o700 }))
        yield* write(file)
        // Also synced when the file already existed, because its writer may not have synced it yet.
        yield* attempt(notWritten, async () => {
          await syncDirectory(parent)
          await syncDirectory(directory)
        })
      })

    const put = Effect.fn("ArtifactStore.put")(function* (bytes: Uint8Array) {
      const ref = refOf(bytes)
      yield* storeDurably(ref, (file) =>
        Effect.gen(function* () {
          const stored = yield* attempt("The artifact could not be read", () => readIfPresent(file))
          if (stored?.ref !== ref) yield* write(bytes, file)
        })
      )
      return ref
    })

    const stage = Effect.fn("ArtifactStore.stage")(function* <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) {
      const temporary = yield* unfinishedFile
      const hash = createHash("sha256")
      let size = 0
      yield* Stream.runForEach(yield* withinSpoolLimit(bytes), (chunk) =>
        attempt(notWritten, async () => {
          hash.update(chunk)
          size += chunk.length
          await temporary.handle.writeFile(chunk)
        })
      )
      const ref = ArtifactRef.make(`sha256:${hash.digest("hex")}`)
      // An existing file has the same bytes, or is damaged. In both cases the new file may replace it.
      const store = storeDurably(ref, (file) =>
        attempt(notWritten, async () => {
          await temporary.handle.sync()
          await fs.rename(temporary.file, file)
        })
      )
      return { ref, size, store }
    })

    const get = Effect.fn("ArtifactStore.get")(function* (ref: ArtifactRef) {
      const stored = yield* attempt("The artifact could not be read", () => readIfPresent(fileOf(ref)))
      if (stored === null) return Option.none<Uint8Array>()
      if (stored.ref !== ref)
        return yield* new ArtifactStoreError({ message: `The artifact ${ref} is damaged on the disk.` })
      return Option.some(stored.bytes)
    })

    const remove = Effect.fn("ArtifactStore.remove")(function* (ref: ArtifactRef) {
      const file = fileOf(ref)
      yield* attempt("The artifact could not be removed", async () => {
        if (await unlinkIfPresent(file)) await syncDirectory(path.dirname(file))
      })
    })

    return { put, stage, get, remove }
  })

/** Stores artifacts below `directory`, which is created if missing. Fails when it cannot be written. */
export const layerDisk = (directory: string): Layer.Layer<ArtifactStore, ArtifactStoreError> =>
  Layer.effect(ArtifactStore, make(directory))
