/**
 * The file format of `spoke export`: gzipped lines. The first line is the header. The last one has a SHA-256 of all
 * lines before it, so that a truncated file is detected. A line is a JSON object (what follows), array (a row) or
 * string (a piece of an original, base64).
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { finished, Readable } from "node:stream"
import { createGunzip, createGzip } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { codeOf } from "../../domain/Thrown.ts"
import { Table } from "../../store/Archive.ts"

/** The archive cannot be written, or is not valid. `message` is for the user of the command line. */
export class ArchiveError extends Schema.TaggedError<ArchiveError>()("ArchiveError", {
  message: Schema.String
}) {}

/** The first line. */
export const Header = Schema.Struct({
  spoke: Schema.Literal("archive"),
  format: Schema.Literal(1),
  /** Version of the program that wrote it. */
  version: Schema.String,
  migrations: Schema.Array(Schema.String),
  /** Ids of the master secrets that its sealed values need. The secrets cannot be derived from their ids. */
  keys: Schema.Array(Schema.String),
  /** The master secret itself, if it was requested. */
  secret: Schema.optionalWith(Schema.Redacted(Schema.String), { exact: true })
})

const Original = Schema.Struct({ original: Schema.String, size: Schema.Int })
const End = Schema.Struct({ sha256: Schema.String, lines: Schema.Int })

/** A line that is a JSON object. */
export const Mark = Schema.parseJson(Schema.Union(Header, Table, Original, End))
const decodeMark = Schema.decode(Mark)
const encodeMark = Schema.encodeSync(Mark)

/** Bytes of an original in one line. */
export const maxOriginalBytesPerLine = 393_216
/** Longer than any line that is written. */
const maxLineBytes = 512 * 1_048_576

const reason = (cause: unknown): string => (codeOf(cause) === "" ? "" : ` (${codeOf(cause)})`)

const attempt = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new ArchiveError({ message: `${what}${reason(cause)}.` })
  })

/**
 * Writes an archive: `line` and `mark` append to it, `end` closes it. The file gets its name, readable by its owner
 * only, once it is complete and synced; an existing file is never overwritten.
 */
export const create = (file: string) =>
  Effect.gen(function* () {
    const what = `${file} cannot be written`
    const fresh = `${file}.${process.pid}.partial`
    if (fs.existsSync(file)) {
      return yield* new ArchiveError({ message: `${file} already exists. Choose another name.` })
    }
    const out = yield* Effect.acquireRelease(
      Effect.sync(() => fs.createWriteStream(fresh, { flags: "wx", mode: 0o600, flush: true })),
      (stream) =>
        Effect.promise(async () => {
          stream.destroy()
          await fs.promises.rm(fresh, { force: true }).catch(() => undefined)
        })
    )
    const zip = createGzip()
    let failure: unknown = null
    const fail = (cause: unknown) => {
      failure ??= cause
      zip.destroy()
    }
    zip.on("error", fail)
    out.on("error", fail)
    zip.pipe(out)
    const hash = createHash("sha256")
    let lines = 0

    const write = (text: string) =>
      attempt(what, () => {
        if (failure !== null) return Promise.reject(failure)
        if (zip.write(text)) return Promise.resolve()
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

    const all = (several: ReadonlyArray<string>) => {
      const text = several.map((line) => `${line}\n`).join("")
      hash.update(text)
      lines += several.length
      return write(text)
    }
    return {
      lines: all,
      mark: (mark: typeof Mark.Type) => all([encodeMark(mark)]),
      end: Effect.suspend(() => write(`${encodeMark({ sha256: hash.digest("hex"), lines })}\n`)).pipe(
        Effect.zipRight(
          attempt(what, async () => {
            const done = new Promise<void>((resolve, reject) =>
              finished(out, (cause) => (cause ? reject(failure ?? cause) : resolve()))
            )
            zip.end()
            await done
            await fs.promises.rename(fresh, file)
            const folder = await fs.promises.open(path.dirname(path.resolve(file)), "r")
            await folder.sync().finally(() => folder.close())
          })
        )
      )
    }
  })

const cut = (file: string) =>
  new ArchiveError({ message: `${file} is damaged or was cut off: it is not a whole archive of Spoke.` })

/** Lines of the uncompressed text, in the batches in which they arrive. */
async function* linesOf(file: string): AsyncGenerator<ReadonlyArray<string>> {
  const source = fs.createReadStream(file)
  const text = createGunzip()
  source.on("error", (cause) => text.destroy(cause))
  source.pipe(text)
  let rest: Array<Buffer> = []
  let held = 0
  try {
    for await (const chunk of Readable.from(text)) {
      if (!Buffer.isBuffer(chunk)) continue
      const last = chunk.lastIndexOf(10)
      if (last < 0) {
        rest.push(chunk)
        held += chunk.length
        if (held > maxLineBytes) throw new Error("A line is too long.")
        continue
      }
      const whole = Buffer.concat([...rest, chunk.subarray(0, last)]).toString("utf8")
      rest = [chunk.subarray(last + 1)]
      held = chunk.length - last
      yield whole.split("\n")
    }
    if (Buffer.concat(rest).length > 0) throw new Error("The last line has no end.")
  } finally {
    source.destroy()
    text.destroy()
  }
}

/** The lines of an archive in order, including the last one. */
export const read = (file: string): Stream.Stream<ReadonlyArray<string>, ArchiveError> =>
  Stream.fromAsyncIterable(linesOf(file), () => cut(file))

/** Decodes a line that is a JSON object. */
export const markOf = (file: string, line: string) => Effect.mapError(decodeMark(line), () => cut(file))

/** Reads the whole file and returns its header. Fails unless it is complete. */
export const verify = (file: string) =>
  Effect.gen(function* () {
    yield* attempt(`${file} cannot be read`, () => fs.promises.access(file, fs.constants.R_OK))
    const hash = createHash("sha256")
    let lines = 0
    let first: string | null = null
    let last: string | null = null
    yield* Stream.runForEach(read(file), (several) =>
      Effect.sync(() => {
        for (const line of several) {
          first ??= line
          if (last !== null) hash.update(`${last}\n`)
          last = line
          lines += 1
        }
      })
    )
    const end = yield* markOf(file, last ?? "")
    if (!("sha256" in end) || end.sha256 !== hash.digest("hex") || end.lines !== lines - 1)
      return yield* cut(file)
    const header = yield* markOf(file, first ?? "")
    return "spoke" in header ? header : yield* cut(file)
  })

/** True when the file is gzipped like an archive; a file of conversations is plain text. */
export const isArchive = (file: string): Effect.Effect<boolean> =>
  Effect.promise(async () => {
    const handle = await fs.promises.open(file, "r").catch(() => null)
    if (handle === null) return false
    try {
      if (!(await handle.stat()).isFile()) return false
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0)
      return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b
    } finally {
      await handle.close()
    }
  })
