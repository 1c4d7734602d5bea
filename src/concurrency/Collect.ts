/** Collects a stream of bytes in memory, up to a limit. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** All bytes of `stream`. Fails with `tooLarge`, and stops reading, as soon as there are more than `maxBytes`. */
export const collect = <E, R, E2>(
  stream: Stream.Stream<Uint8Array, E, R>,
  maxBytes: number,
  tooLarge: () => E2
): Effect.Effect<Uint8Array, E | E2, R> =>
  stream.pipe(
    Stream.runFoldEffect({ size: 0, chunks: new Array<Uint8Array>() }, ({ chunks, size }, chunk) => {
      chunks.push(chunk)
      const now = size + chunk.length
      return now > maxBytes ? Effect.fail(tooLarge()) : Effect.succeed({ size: now, chunks })
    }),
    Effect.map(({ chunks }) => Uint8Array.from(Buffer.concat(chunks)))
  )
