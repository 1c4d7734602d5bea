/**
 * The bytes of a turn's stream, in the format of a {@link FrameWriter}. Waiting parts are sent in one write, and an
 * idle stream sends keep-alives.
 */
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { TurnFailure, TurnPart } from "../domain/chat/ChatTurn.ts"

/** Encodes the parts of one stream. */
export interface FrameWriter {
  /** Sent before any part, because proxies forward the first byte at once. */
  readonly opening: string
  readonly keepAlive: string
  /** Frames of parts that are sent in one write. */
  readonly frames: (parts: Iterable<TurnPart>) => string
  /** Frames of a failed turn. Only {@link close} follows. */
  readonly failed: (code: TurnFailure["_tag"]) => string
  /** The last frames. */
  readonly close: () => string
}

/** A comment, which clients ignore. */
export const keepAliveComment = ": keep-alive\n\n"
const keepAliveInterval = Duration.seconds(12)

const codeOf = (cause: Cause.Cause<TurnFailure>): TurnFailure["_tag"] =>
  Option.match(Cause.failureOption(cause), { onNone: () => "TURN_FAILED", onSome: ({ _tag }) => _tag })

const logDefect = (cause: Cause.Cause<TurnFailure>) =>
  Option.isSome(Cause.failureOption(cause)) ? Effect.void : Effect.logError("A turn's stream broke", cause)

/** Maximum writes that wait for a slow client. Then no further parts are read. */
const maxUnsentWrites = 16

const utf8 = new TextEncoder()

/** Joins waiting texts into one write. */
const bytesOf = (texts: Chunk.Chunk<string>) => Chunk.of(utf8.encode(Chunk.join(texts, "")))

/**
 * The bytes of the stream. A mailbox joins parts and keep-alives, because a merge of streams forks two fibers per
 * chunk.
 */
export const bytes = (
  parts: Stream.Stream<TurnPart, TurnFailure>,
  makeWriter: () => FrameWriter
): Stream.Stream<Uint8Array> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const writer = makeWriter()
      const unsent = yield* Mailbox.make<string>(maxUnsentWrites)
      yield* unsent.offer(writer.opening)
      const write = Stream.runForEachChunk(parts, (chunk) => unsent.offer(writer.frames(chunk))).pipe(
        Effect.catchAllCause((cause) =>
          Effect.zipRight(logDefect(cause), unsent.offer(writer.failed(codeOf(cause))))
        ),
        Effect.zipRight(Effect.suspend(() => unsent.offer(writer.close())))
      )
      // Ends with the parts: a client that has not read them all by then needs no keep-alive.
      const keepAlive = Effect.repeat(
        Effect.sync(() => unsent.unsafeOffer(writer.keepAlive)),
        Schedule.spaced(keepAliveInterval)
      ).pipe(Effect.delay(keepAliveInterval), Effect.forkScoped)
      yield* Effect.zipRight(keepAlive, write).pipe(
        Effect.scoped,
        Mailbox.into(unsent),
        Effect.interruptible,
        Effect.forkScoped
      )
      return Stream.mapChunks(Mailbox.toStream(unsent), bytesOf)
    })
  )
