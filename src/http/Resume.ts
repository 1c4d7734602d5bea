/**
 * Continues a stream that was cut off. Waiting text is sent as one frame, so the number of frames can differ
 * between two streams of a turn. A client therefore counts the length of `delta` for a `text-delta`, and 1 for every
 * other `data:` frame except heartbeats and reasoning, which is not replayed.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const utf8 = { encode: new TextEncoder(), decode: new TextDecoder() }

const Delta = Schema.parseJson(
  Schema.Struct({ type: Schema.Literal("text-delta"), id: Schema.String, delta: Schema.String })
)
const decodeDelta = Schema.decodeOption(Delta)

const prefix = "data: "
const uncountedPrefixes = [`${prefix}{"type":"data-heartbeat"`, `${prefix}{"type":"reasoning-`]

/**
 * `body` without its first `after` counts. Comments, heartbeats and `[DONE]` do not count. Each chunk of `body` must
 * hold whole frames.
 */
export const skip = <E, R>(
  body: Stream.Stream<Uint8Array, E, R>,
  after: number
): Stream.Stream<Uint8Array, E, R> => {
  if (after === 0) return body
  return Stream.suspend(() => {
    let remaining = after
    const withoutSkipped = (frame: string): string => {
      if (
        remaining === 0 ||
        !frame.startsWith(`${prefix}{`) ||
        uncountedPrefixes.some((one) => frame.startsWith(one))
      )
        return frame
      const delta = Option.getOrNull(decodeDelta(frame.slice(prefix.length)))
      const size = delta === null ? 1 : delta.delta.length
      if (size <= remaining) {
        remaining -= size
        return ""
      }
      const cut =
        delta === null ? frame : prefix + JSON.stringify({ ...delta, delta: delta.delta.slice(remaining) })
      remaining = 0
      return cut
    }
    const cutFrames = (frames: string) =>
      frames
        .split("\n\n")
        .map(withoutSkipped)
        .filter((frame) => frame !== "")
        .map((frame) => `${frame}\n\n`)
        .join("")
    return body.pipe(
      Stream.map((bytes) =>
        remaining === 0 ? bytes : utf8.encode.encode(cutFrames(utf8.decode.decode(bytes)))
      ),
      Stream.filter((bytes) => bytes.length > 0)
    )
  })
}
