/**
 * Continues a stream where a client lost it. Waiting text is sent as one frame, so the number of frames can differ
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
const asDelta = Schema.decodeOption(Delta)

const prefix = "data: "
const uncounted = [`${prefix}{"type":"data-heartbeat"`, `${prefix}{"type":"reasoning-`]

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
    let left = after
    const rest = (frame: string): string => {
      if (left === 0 || !frame.startsWith(`${prefix}{`) || uncounted.some((one) => frame.startsWith(one)))
        return frame
      const delta = Option.getOrNull(asDelta(frame.slice(prefix.length)))
      const size = delta === null ? 1 : delta.delta.length
      if (size <= left) {
        left -= size
        return ""
      }
      const cut =
        delta === null ? frame : prefix + JSON.stringify({ ...delta, delta: delta.delta.slice(left) })
      left = 0
      return cut
    }
    const unread = (frames: string) =>
      frames
        .split("\n\n")
        .map(rest)
        .filter((frame) => frame !== "")
        .map((frame) => `${frame}\n\n`)
        .join("")
    return body.pipe(
      Stream.map((bytes) => (left === 0 ? bytes : utf8.encode.encode(unread(utf8.decode.decode(bytes))))),
      Stream.filter((bytes) => bytes.length > 0)
    )
  })
}
