/** Decodes the bytes of one answer into parts as they arrive, up to a finish or a failure. */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Answered } from "../StreamingPost.ts"
import type { ModelError, ModelPart } from "../ModelRuntime.ts"
import * as Failure from "./ProviderFailure.ts"
import { SseLines } from "../../concurrency/SseLines.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Decodes one answer, event by event. */
export interface Decoder {
  /** True once the answer's finish was emitted. */
  readonly isFinished: boolean
  /** Adds the parts of the event to `parts`. A returned error ends the answer after them. */
  readonly read: (data: string, parts: Array<ModelPart>) => ModelError | null
  /** Called when the provider closed the connection. */
  readonly end: (parts: Array<ModelPart>) => ModelError | null
}

/** Parts, and how to continue: null, or the error with which the stream fails next. */
type Step = readonly [Chunk.Chunk<ModelPart>, Option.Option<ModelError | null>]

/** Maximum length of one event, in UTF-16 units. The last one of `/responses` repeats the whole answer. */
const maxEventLength = 8 * MiB

/** The parts of one answer. Parts that arrived together are one chunk. A decoder is used for one answer only. */
export const partsOf = (answered: Answered, decoder: Decoder): Stream.Stream<ModelPart, ModelError> => {
  const lines = new SseLines(maxEventLength)
  let hasReceived = false
  let hasParts = false

  const read = (chunks: ReadonlyArray<Uint8Array>, parts: Array<ModelPart>): ModelError | null => {
    hasReceived = true
    for (const bytes of chunks) {
      const events = lines.push(bytes)
      if (events === null) return Failure.malformed("an event is too long")
      for (const data of events) {
        // Some services send empty events so that the connection stays open.
        if (data === "") continue
        const failure = decoder.read(data, parts)
        if (failure !== null || decoder.isFinished) return failure
      }
    }
    return null
  }

  const end = (parts: Array<ModelPart>): ModelError | null => {
    // Some providers omit the final blank line. An incomplete frame is an incomplete answer.
    const rest = lines.end()
    if (rest !== null && rest !== "") decoder.read(rest, parts)
    return decoder.isFinished ? null : decoder.end(parts)
  }

  const bytes = Effect.mapError(answered.read, (error) => Failure.fromTransport(error, hasReceived))
  // A failure comes after the parts before it.
  const next = (failure: ModelError | null): Effect.Effect<Step, ModelError> =>
    failure !== null
      ? Effect.fail(failure)
      : Effect.flatMap(bytes, (chunks) => {
          const parts: Array<ModelPart> = []
          const problem = chunks === null ? end(parts) : read(chunks, parts)
          hasParts ||= parts.length > 0
          const nextFailure = problem !== null && hasParts ? Failure.afterParts(problem) : problem
          const chunk = Chunk.unsafeFromArray(parts)
          if (nextFailure !== null || !decoder.isFinished)
            return Effect.succeed<Step>([chunk, Option.some(nextFailure)])
          // The finish may come before the end of the answer. The rest is read so that the connection can be reused.
          return Effect.as(answered.noTokensLeft, [chunk, Option.none()])
        })
  return Stream.paginateChunkEffect(null, next)
}
