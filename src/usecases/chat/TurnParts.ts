/**
 * The queue of parts from one turn to the reader of its stream. Events are never lost and never wait. Text waits while
 * the reader is too far behind, so that memory stays bounded.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { TurnFailure, TurnPart } from "../../domain/chat/ChatTurn.ts"

/** Unread parts above which the next text has to wait. */
export const maxUnreadParts = 16_384

export interface TurnParts {
  /** Adds a part at once, whatever the number of unread parts. */
  readonly add: (part: TurnPart) => Effect.Effect<void>
  /** Adds parts, and waits while more than {@link maxUnreadParts} are unread. */
  readonly addAndWait: (parts: ReadonlyArray<TurnPart>) => Effect.Effect<void>
  /** Ends the stream after the unread parts. */
  readonly end: (exit: Exit.Exit<void, TurnFailure>) => Effect.Effect<void>
  /** For a reader that disconnects: drops unread and later parts, and ends every wait. */
  readonly shutdown: Effect.Effect<void>
  /** Can be read once. Parts that came together are one chunk. */
  readonly stream: Stream.Stream<TurnPart, TurnFailure>
}

export const make: Effect.Effect<TurnParts> = Effect.gen(function* () {
  const mailbox = yield* Mailbox.make<TurnPart, TurnFailure>()
  const writable = yield* Effect.makeLatch(true)
  const isFull = () => Option.exists(mailbox.unsafeSize(), (unread) => unread > maxUnreadParts)
  return {
    add: (part) => mailbox.offer(part),
    addAndWait: (parts) =>
      Effect.suspend(() => {
        for (const part of parts) mailbox.unsafeOffer(part)
        if (!isFull()) return Effect.void
        writable.unsafeClose()
        return writable.await
      }),
    end: (exit) => mailbox.done(exit),
    shutdown: Effect.zipRight(mailbox.shutdown, writable.open),
    stream: Stream.mapChunksEffect(Mailbox.toStream(mailbox), (parts) => Effect.as(writable.open, parts))
  }
})
