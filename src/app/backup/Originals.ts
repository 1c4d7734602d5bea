/** The originals of an archive: one file each, named by its SHA-256. */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ArtifactStore, refOf } from "../../capabilities/ArtifactStore.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import * as ArchivedOriginals from "../../store/archive/Originals.ts"
import { ArchiveError, attempt, damaged, read, write } from "./PartFile.ts"

/** Originals in memory at a time. */
const maxConcurrentOriginals = 4

const listName = "originals.txt.gz"

const fileOf = (folder: string, ref: ArtifactRef) => {
  const digest = ref.slice("sha256:".length)
  return path.join(folder, "originals", digest.slice(0, 2), digest)
}

const writeFile = (file: string, bytes: Uint8Array) =>
  attempt(`${file} cannot be written`, async () => {
    await fs.promises.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    const partial = `${file}.${process.pid}.partial`
    await fs.promises.writeFile(partial, bytes, { mode: 0o600, flush: true })
    await fs.promises.rename(partial, file)
  })

/** False when the original was removed meanwhile. */
const save = (folder: string, ref: ArtifactRef) =>
  Effect.gen(function* () {
    const file = fileOf(folder, ref)
    if (fs.existsSync(file)) return true
    const bytes = yield* (yield* ArtifactStore).get(ref)
    if (Option.isNone(bytes)) return false
    yield* writeFile(file, bytes.value)
    return true
  })

/** Writes the originals, and their list. `missing`: how many were removed since the snapshot of the rows. */
export const saveAll = (folder: string, tenantId: string | null) =>
  Effect.gen(function* () {
    let count = 0
    let missing = 0
    const { bytes, sha256 } = yield* write(path.join(folder, listName), (take) =>
      Stream.runForEachChunk(
        ArchivedOriginals.refs(tenantId).pipe(
          Stream.mapEffect((ref) => Effect.map(save(folder, ref), (saved) => ({ ref, saved })), {
            concurrency: maxConcurrentOriginals
          }),
          Stream.tap(({ saved }) =>
            Effect.sync(() => {
              if (saved) count += 1
              else missing += 1
            })
          ),
          Stream.filter(({ saved }) => saved)
        ),
        (found) => take(Array.from(found, ({ ref }) => ref))
      )
    )
    return { missing, list: { count, file: listName, bytes, sha256 } }
  })

/** The originals that an archive lists. */
export const listOriginals = (folder: string) =>
  read(path.join(folder, listName)).pipe(
    Stream.flattenIterables,
    Stream.mapEffect((line) =>
      Effect.mapError(Schema.decode(ArtifactRef)(line), () => damaged(path.join(folder, listName)))
    )
  )

/** The bytes of an original. */
export const load = (folder: string, ref: ArtifactRef) =>
  Effect.gen(function* () {
    const file = fileOf(folder, ref)
    const bytes = yield* attempt(`${file} cannot be read`, () => fs.promises.readFile(file))
    if (refOf(bytes) !== ref)
      return yield* new ArchiveError({ message: `The original ${ref} is damaged in the archive.` })
    return bytes
  })

/** Fails unless all originals that an archive lists are whole. */
export const verifyAll = (folder: string) =>
  Stream.runDrain(
    Stream.mapEffect(listOriginals(folder), (ref) => load(folder, ref), {
      concurrency: maxConcurrentOriginals
    })
  )

/** Stores all originals of an archive, and counts them. */
export const restoreAll = (folder: string) =>
  Effect.gen(function* () {
    const artifacts = yield* ArtifactStore
    return yield* Stream.runCount(
      Stream.mapEffect(
        listOriginals(folder),
        (ref) => Effect.flatMap(load(folder, ref), (bytes) => artifacts.put(bytes)),
        { concurrency: maxConcurrentOriginals }
      )
    )
  })
