/** Reads and decompresses a response's body, with limits on the received and on the decompressed size. */
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import { types } from "node:util"
import * as Schema from "effect/Schema"
import { codeOf } from "../../domain/ThrownErrors.ts"

/** The body exceeds the caller's limit. */
export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>()("BodyTooLarge", {}) {}

/** The body does not match its `content-encoding`, or the coding was not requested. */
export class BodyUnreadable extends Schema.TaggedError<BodyUnreadable>()("BodyUnreadable", {}) {}

/** The value of `accept-encoding`: the codings of {@link decode}. */
export const acceptEncoding = "gzip, deflate, br"

/** Maximum number of nested codings. More are an attack. */
const maxCodings = 2

const gunzip = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.gunzip)
const inflate = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.inflate)
const inflateRaw = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.inflateRaw)
const unbrotli = promisify<Uint8Array, zlib.BrotliOptions, Uint8Array>(zlib.brotliDecompress)

// Many servers flush the compressed data but never finish it. HTTP's framing shows whether all bytes have arrived.
const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants

// Some servers send raw deflate, most the zlib format that the standard requires, whose first four bits are 8.
const inflateAny = (bytes: Uint8Array, options: zlib.ZlibOptions) =>
  ((bytes[0] ?? 0) & 0x0f) === 8 ? inflate(bytes, options) : inflateRaw(bytes, options)

type Decompress = (bytes: Uint8Array, maxOutputLength: number) => Promise<Uint8Array>

const decompressGzip: Decompress = (bytes, maxOutputLength) =>
  gunzip(bytes, { maxOutputLength, finishFlush: Z_SYNC_FLUSH })

const codings: ReadonlyMap<string, Decompress> = new Map([
  ["gzip", decompressGzip],
  ["x-gzip", decompressGzip],
  ["deflate", (bytes, maxOutputLength) => inflateAny(bytes, { maxOutputLength, finishFlush: Z_SYNC_FLUSH })],
  [
    "br",
    (bytes, maxOutputLength) => unbrotli(bytes, { maxOutputLength, finishFlush: BROTLI_OPERATION_FLUSH })
  ]
])

const isOverflow = (cause: unknown): boolean => codeOf(cause) === "ERR_BUFFER_TOO_LARGE"

/**
 * Decodes each coding of `contentEncoding`, last first. Rejects with {@link BodyTooLarge} or {@link BodyUnreadable}.
 */
export const decode = async (
  bytes: Uint8Array,
  contentEncoding: string,
  maxBytes: number
): Promise<Uint8Array> => {
  const names = contentEncoding
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity")
  // Responses to HEAD and 304 have the headers of a body but no bytes.
  if (bytes.length === 0) return bytes
  if (names.length > maxCodings) throw new BodyUnreadable()
  let decompressed = bytes
  for (const name of names.toReversed()) {
    const decompress = codings.get(name)
    if (decompress === undefined) throw new BodyUnreadable()
    decompressed = await decompress(decompressed, Math.max(1, maxBytes)).catch((cause: unknown) => {
      throw isOverflow(cause) ? new BodyTooLarge() : new BodyUnreadable()
    })
  }
  if (decompressed.length > maxBytes) throw new BodyTooLarge()
  // Not a Buffer, whose slices would share its memory.
  return names.length === 0
    ? bytes
    : new Uint8Array(decompressed.buffer, decompressed.byteOffset, decompressed.length)
}

/**
 * The bytes of a stream, up to the first piece that `isLast`. Rejects with {@link BodyTooLarge} as soon as there are more
 * than `maxBytes`.
 */
export const collect = async (
  stream: AsyncIterable<unknown>,
  maxBytes: number,
  isLast: (piece: Uint8Array) => boolean = () => false
): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  for await (const chunk of stream) {
    if (!types.isUint8Array(chunk)) continue
    size += chunk.length
    if (size > maxBytes) throw new BodyTooLarge()
    chunks.push(chunk)
    // Leaving the loop closes the connection.
    if (isLast(chunk)) break
  }
  const whole = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.length
  }
  return whole
}
