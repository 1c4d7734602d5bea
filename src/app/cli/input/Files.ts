/** Reads files that are named on the command line. The length of a pipe is not known before it has been read. */
import * as fs from "node:fs"
import * as Effect from "effect/Effect"

/** The bytes of a file or a pipe. Fails if there are more than `maxBytes`, without reading on. */
export const readBytes = <E>(
  file: string,
  maxBytes: number,
  failed: (message: string) => E
): Effect.Effect<Buffer, E> =>
  Effect.tryPromise({
    try: async (signal) => {
      const chunks: Array<Buffer> = []
      // The last byte is one too many.
      for await (const chunk of fs.createReadStream(file, { end: maxBytes, signal })) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
    catch: () => failed(`${file} cannot be read.`)
  }).pipe(
    Effect.filterOrFail(
      (bytes) => bytes.length <= maxBytes,
      () => failed(`${file} is longer than ${maxBytes} bytes.`)
    )
  )

/** {@link readBytes} as text, without a byte order mark. */
export const readText = <E>(file: string, maxBytes: number, failed: (message: string) => E) =>
  Effect.map(readBytes(file, maxBytes, failed), (bytes) => bytes.toString("utf8").replace(/^\uFEFF/u, ""))
