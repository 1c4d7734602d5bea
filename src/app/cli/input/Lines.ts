/** Splits a text of any length into lines. */
import * as Stream from "effect/Stream"

const lineFeed = 10

/** Holds the beginning of a line until its end arrives, and drops it once it is longer than `maxLineBytes`. */
const makeSplitter = (maxLineBytes: number) => {
  const decoder = new TextDecoder()
  let parts: Array<Uint8Array> = []
  let lineBytes = 0
  const add = (part: Uint8Array) => {
    lineBytes += part.length
    if (lineBytes <= maxLineBytes) parts.push(part)
    else parts = []
  }
  const end = (): string | null => {
    const line = lineBytes > maxLineBytes ? null : decoder.decode(Buffer.concat(parts)).replace(/\r$/u, "")
    parts = []
    lineBytes = 0
    return line
  }
  return {
    /** The lines that end in these bytes. */
    take: (bytes: Uint8Array): ReadonlyArray<string | null> => {
      const lines: Array<string | null> = []
      let begin = 0
      for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, begin)) {
        add(bytes.subarray(begin, at))
        lines.push(end())
        begin = at + 1
      }
      add(bytes.subarray(begin))
      return lines
    },
    /** The last line, if it has no line break. */
    rest: (): ReadonlyArray<string | null> => (lineBytes === 0 ? [] : [end()])
  }
}

/** The lines of a text. One of more than `maxLineBytes` is null, and takes no memory. */
export const linesOf = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>,
  maxLineBytes: number
): Stream.Stream<string | null, E, R> =>
  Stream.suspend(() => {
    const { rest, take } = makeSplitter(maxLineBytes)
    return bytes.pipe(
      Stream.mapConcat(take),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(rest())))
    )
  })
