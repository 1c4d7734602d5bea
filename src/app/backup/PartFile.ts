/** Gzipped files of lines. A file gets its name once it is complete and on disk. */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { finished, Readable } from "node:stream"
import { createGunzip, createGzip } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { codeOf } from "../../domain/ThrownErrors.ts"
import { sync } from "../../store/database/Folder.ts"
import { MiB } from "../../domain/Bytes.ts"

/** The archive cannot be written, or is not valid. `message` is for the user of the command line. */
export class ArchiveError extends Schema.TaggedError<ArchiveError>()("ArchiveError", {
  message: Schema.String
}) {}

/** Longer than any line that is written. */
const maxLineBytes = 512 * MiB

const reason = (cause: unknown): string => (codeOf(cause) === "" ? "" : ` (${codeOf(cause)})`)

export const attempt = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new ArchiveError({ message: `${what}${reason(cause)}.` })
  })

/** A file's size in bytes, and the SHA-256 of its bytes. */
export interface Written {
  readonly bytes: number
  readonly sha256: string
}

type Take = (lines: ReadonlyArray<string>) => Effect.Effect<void, ArchiveError>

const openFile = (file: string) =>
  Effect.gen(function* () {
    const what = `${file} cannot be written`
    const partial = `${file}.${process.pid}.partial`
    yield* attempt(what, () => fs.promises.mkdir(path.dirname(file), { recursive: true, mode: 0o700 }))
    const out = yield* Effect.acquireRelease(
      Effect.sync(() => fs.createWriteStream(partial, { flags: "w", mode: 0o600, flush: true })),
      (stream) =>
        Effect.promise(async () => {
          stream.destroy()
          await fs.promises.rm(partial, { force: true }).catch(() => undefined)
        })
    )
    const zip = createGzip()
    const hash = createHash("sha256")
    let bytes = 0
    let failure: unknown = null
    const fail = (cause: unknown) => {
      failure ??= cause
      zip.destroy()
    }
    zip.on("error", fail)
    out.on("error", fail)
    zip.on("data", (chunk: Buffer) => {
      hash.update(chunk)
      bytes += chunk.length
    })
    zip.pipe(out)

    const write: Take = (lines) =>
      attempt(what, () => {
        if (failure !== null) return Promise.reject(failure)
        if (zip.write(lines.map((line) => `${line}\n`).join(""))) return Promise.resolve()
        return new Promise<void>((resolve, reject) => {
          const settle = () => {
            zip.off("drain", settle)
            zip.off("close", settle)
            if (failure === null) resolve()
            else reject(failure)
          }
          zip.on("drain", settle)
          zip.on("close", settle)
        })
      })

    const end = attempt(what, async (): Promise<Written> => {
      const done = new Promise<void>((resolve, reject) =>
        finished(out, (cause) => (cause ? reject(failure ?? cause) : resolve()))
      )
      zip.end()
      await done
      await fs.promises.rename(partial, file)
      await sync(path.dirname(file))
      return { bytes, sha256: hash.digest("hex") }
    })
    return { write, end }
  })

/** Writes the lines that `fill` passes on, and replaces an earlier file. If `fill` fails, nothing is replaced. */
export const write = <A, E, R>(file: string, fill: (take: Take) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const out = yield* openFile(file)
      const made = yield* fill(out.write)
      return { made, ...(yield* out.end) }
    })
  )

export const damaged = (file: string) =>
  new ArchiveError({ message: `${file} is damaged or was cut off: it is not a whole archive of Spoke.` })

/** Lines of the uncompressed text, in the batches in which they arrive. */
async function* linesOf(file: string): AsyncGenerator<ReadonlyArray<string>> {
  const source = fs.createReadStream(file)
  const text = createGunzip()
  source.on("error", (cause) => text.destroy(cause))
  source.pipe(text)
  let rest: Array<Buffer> = []
  let heldBytes = 0
  try {
    for await (const chunk of Readable.from(text)) {
      if (!Buffer.isBuffer(chunk)) continue
      const last = chunk.lastIndexOf(10)
      if (last < 0) {
        rest.push(chunk)
        heldBytes += chunk.length
        if (heldBytes > maxLineBytes) throw new Error("A line is too long.")
        continue
      }
      const whole = Buffer.concat([...rest, chunk.subarray(0, last)]).toString("utf8")
      rest = [chunk.subarray(last + 1)]
      heldBytes = chunk.length - last
      yield whole.split("\n")
    }
    if (Buffer.concat(rest).length > 0) throw new Error("The last line has no end.")
  } finally {
    source.destroy()
    text.destroy()
  }
}

/** The lines of a file in order. */
export const read = (file: string): Stream.Stream<ReadonlyArray<string>, ArchiveError> =>
  Stream.fromAsyncIterable(linesOf(file), () => damaged(file))

/** Whether the file has the given size and SHA-256. */
export const isWhole = (file: string, { bytes, sha256 }: Written) =>
  attempt(`${file} cannot be read`, async () => {
    const hash = createHash("sha256")
    let size = 0
    for await (const chunk of fs.createReadStream(file)) {
      if (!Buffer.isBuffer(chunk)) continue
      hash.update(chunk)
      size += chunk.length
    }
    return size === bytes && hash.digest("hex") === sha256
  })

/** Fails unless {@link isWhole}. */
export const verify = (file: string, written: Written) =>
  isWhole(file, written).pipe(
    Effect.filterOrFail(
      (whole) => whole,
      () => damaged(file)
    ),
    Effect.asVoid
  )
