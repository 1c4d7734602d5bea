/**
 * Reads ZIP archives in memory by their central directory, one entry at a time, with limits on all sizes. Names of
 * entries are never used as paths.
 */
import * as Effect from "effect/Effect"
import { Inflate } from "fflate"
import { isUtf8 } from "node:buffer"
import { yieldToEventLoop } from "../concurrency/YieldToEventLoop.ts"
import { ReaderError, permanentError } from "../capabilities/SourceReaders.ts"
import { MiB } from "../domain/Bytes.ts"

export const zipLimits = {
  entries: 2_000,
  /** Maximum entries with those that are left out, such as folders. */
  allEntries: 20_000,
  /** Maximum bytes of one entry. */
  entryBytes: 50 * MiB,
  /** Maximum bytes of all entries. */
  totalBytes: 500 * MiB,
  /** Maximum compression ratio of an entry of more than one mebibyte. */
  ratio: 200
} as const

export interface ZipEntry {
  readonly name: string
  readonly encrypted: boolean
  readonly method: number
  readonly packedBytes: number
  readonly bytes: number
  /** Offset of the local header from the archive's start. */
  readonly offset: number
}

const notAZip = permanentError(
  "malformed",
  "The file is no ZIP archive, or it is damaged. Pack it again and upload the new one."
)
const tooMany = permanentError(
  "too_many_entries",
  `The ZIP has more than ${zipLimits.entries} files, or ${zipLimits.allEntries} with folders and hidden files. Split it into several.`
)
const tooLarge = permanentError("too_large", "The ZIP unpacks to more than 500 MB. Split it into several.")

/** Errors of single entries, which do not affect other entries. */
const entryTooLarge = permanentError(
  "too_large",
  "The file unpacks to more than 50 MB, or is packed suspiciously tightly."
)
const entryEncrypted = permanentError("encrypted", "The file is encrypted. Pack it again without a password.")
const entryMethod = permanentError(
  "malformed",
  "The file is packed by a method that is not read. Use deflate, which is the usual one."
)
const entryDamaged = permanentError("malformed", "The file is damaged in the archive.")

const endMark = 0x06054b50
const directoryMark = 0x02014b50
const localMark = 0x04034b50
const zip64Mark = 0xffffffff

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The characters of 0x80 to 0xFF in code page 437, in which names are that are not UTF-8. */
const codePage437 =
  "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"

const nameOf = (bytes: Uint8Array): string =>
  isUtf8(bytes)
    ? new TextDecoder().decode(bytes)
    : Array.from(bytes, (byte) =>
        byte < 0x80 ? String.fromCharCode(byte) : codePage437.charAt(byte - 0x80)
      ).join("")

/** The position of the end record: at the end, followed by at most 64 KiB of comment. */
const findEnd = (view: DataView): number => {
  for (let at = view.byteLength - 22; at >= Math.max(0, view.byteLength - 22 - 0xffff); at--) {
    if (view.getUint32(at, true) === endMark) return at
  }
  return -1
}

/** The values, with those that are {@link zip64Mark} replaced from the ZIP64 field, which has them in this order. */
const readZip64 = (
  view: DataView,
  start: number,
  length: number,
  values: ReadonlyArray<number>
): ReadonlyArray<number> => {
  for (let at = start; at + 4 <= start + length;) {
    const size = view.getUint16(at + 2, true)
    if (view.getUint16(at, true) === 1) {
      let place = at + 4
      return values.map((value) => {
        if (value !== zip64Mark || place + 8 > at + 4 + size) return value
        const large = Number(view.getBigUint64(place, true))
        place += 8
        return large
      })
    }
    at += 4 + size
  }
  return values
}

const entryAt = (
  archive: Uint8Array,
  view: DataView,
  at: number
): { readonly entry: ZipEntry; readonly next: number } => {
  const [nameLength, extraLength, commentLength] = [28, 30, 32].map((place) =>
    view.getUint16(at + place, true)
  )
  const nameStart = at + 46
  const extraStart = nameStart + (nameLength ?? 0)
  const sizes = [24, 20, 42].map((place) => view.getUint32(at + place, true))
  const [bytes = 0, packedBytes = 0, offset = 0] = readZip64(view, extraStart, extraLength ?? 0, sizes)
  const entry: ZipEntry = {
    name: nameOf(archive.subarray(nameStart, extraStart)),
    encrypted: (view.getUint16(at + 8, true) & 1) === 1,
    method: view.getUint16(at + 10, true),
    packedBytes,
    bytes,
    offset
  }
  return { entry, next: extraStart + (extraLength ?? 0) + (commentLength ?? 0) }
}

const readDirectory = (
  archive: Uint8Array,
  isWanted: (entry: ZipEntry) => boolean
): ReadonlyArray<ZipEntry> | ReaderError => {
  const view = viewOf(archive)
  const end = findEnd(view)
  if (end === -1) return notAZip
  const entries: Array<ZipEntry> = []
  let all = 0
  let at = view.getUint32(end + 16, true)
  // A ZIP64 archive has the real position in a record to which a locator before the end record points.
  if (at === zip64Mark && end >= 20)
    at = Number(view.getBigUint64(Number(view.getBigUint64(end - 12, true)) + 48, true))
  while (at + 46 <= end && view.getUint32(at, true) === directoryMark) {
    const { entry, next } = entryAt(archive, view, at)
    if (isWanted(entry)) entries.push(entry)
    if (entries.length > zipLimits.entries || ++all > zipLimits.allEntries) return tooMany
    at = next
  }
  return all === 0 && view.getUint16(end + 10, true) > 0 ? notAZip : entries
}

/** The wanted entries in the archive's order. Nothing is unpacked yet. */
export const zipEntries = (
  archive: Uint8Array,
  isWanted: (entry: ZipEntry) => boolean = () => true
): Effect.Effect<ReadonlyArray<ZipEntry>, ReaderError> =>
  Effect.try({ try: () => readDirectory(archive, isWanted), catch: () => notAZip }).pipe(
    Effect.flatMap((found) => (found instanceof ReaderError ? Effect.fail(found) : Effect.succeed(found))),
    Effect.filterOrFail(
      (entries) => entries.reduce((sum, { bytes }) => sum + bytes, 0) <= zipLimits.totalBytes,
      () => tooLarge
    ),
    // Overlapping entries would let a small archive be unpacked any number of times.
    Effect.filterOrFail(
      (entries) => entries.reduce((sum, { packedBytes }) => sum + packedBytes, 0) <= archive.length,
      () => notAZip
    )
  )

const packedBytesOf = (archive: Uint8Array, { offset, packedBytes }: ZipEntry): Uint8Array | undefined => {
  const view = viewOf(archive)
  if (view.getUint32(offset, true) !== localMark) return undefined
  const start = offset + 30 + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true)
  return start + packedBytes > archive.length ? undefined : archive.subarray(start, start + packedBytes)
}

/** Number of compressed bytes at a time. The output is at most a thousand times as large. */
const bytesPerStep = 8 * 1024

const concatenated = (parts: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

const inflate = (data: Uint8Array, limit: number): Effect.Effect<Uint8Array, ReaderError> =>
  Effect.gen(function* () {
    const parts: Array<Uint8Array> = []
    let length = 0
    const stream = new Inflate((part) => {
      length += part.length
      if (length <= limit) parts.push(part)
    })
    for (let at = 0; at < data.length; at += bytesPerStep) {
      yield* Effect.try({
        try: () => stream.push(data.subarray(at, at + bytesPerStep), at + bytesPerStep >= data.length),
        catch: () => entryDamaged
      })
      if (length > limit) return yield* entryTooLarge
      // A large entry must not block the thread.
      yield* yieldToEventLoop
    }
    return concatenated(parts, length)
  })

/** The entry's bytes, at most `zipLimits.entryBytes` and `bytesLeft`. Declared sizes are not trusted. */
export const unzipEntry = (
  archive: Uint8Array,
  entry: ZipEntry,
  bytesLeft: number
): Effect.Effect<Uint8Array, ReaderError> =>
  Effect.gen(function* () {
    if (entry.encrypted) return yield* entryEncrypted
    const data = yield* Effect.try({ try: () => packedBytesOf(archive, entry), catch: () => entryDamaged })
    if (data === undefined) return yield* entryDamaged
    const limit = Math.min(zipLimits.entryBytes, bytesLeft, Math.max(MiB, data.length * zipLimits.ratio))
    if (entry.bytes > limit) return yield* entryTooLarge
    if (entry.method === 8) return yield* inflate(data, limit)
    if (entry.method !== 0) return yield* entryMethod
    return data.length > limit ? yield* entryTooLarge : data
  })
