/**
 * What a turn says, on its way to the one who reads it. A part costs no step of a fiber on either side: what comes within
 * a moment is told in one go, by the moment's end, and only a reader who is far behind makes the turn wait.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../domain/ChatTurn.ts"
import type { RuntimeTimeout, TurnFailed } from "../../domain/Errors.ts"

type Failure = TurnFailed | RuntimeTimeout

/** Parts that may wait for a slow reader before the turn waits for it. */
const backlog = 16_384

export class Parts {
  #waiting: Array<TurnPart> = []
  #end: Exit.Exit<void, Failure> | null = null
  #gone = false
  #reader: (() => void) | null = null
  #awake = false
  readonly #writers = new Set<() => void>()

  /** Adds at once; what is returned waits while the reader is too far behind. */
  add(part: TurnPart): Effect.Effect<void> {
    if (this.#gone || this.#end !== null) return Effect.void
    this.#waiting.push(part)
    this.#wake()
    return this.#waiting.length <= backlog ? Effect.void : this.#room
  }

  /** Nothing follows; what waits is still told. */
  end(exit: Exit.Exit<void, Failure>): void {
    this.#end ??= exit
    this.#wake()
  }

  /** Nobody reads: what waits and what comes is dropped. */
  readonly shutdown = Effect.sync(() => {
    this.#gone = true
    this.#waiting = []
    this.#relieve()
    this.#wake()
  })

  /**
   * Tells `onParts` all that comes, in order; an effect other than `Effect.void` is run before the next. Fails as the turn
   * does. To be read once, so or as a {@link stream}.
   */
  tell(onParts: (parts: Iterable<TurnPart>) => Effect.Effect<void>): Effect.Effect<void, Failure> {
    return this.#listen(
      (parts) => {
        const told = onParts(parts)
        return told === Effect.void
          ? null
          : Effect.zipRight(
              told,
              Effect.suspend(() => this.tell(onParts))
            )
      },
      (exit) => exit
    )
  }

  get stream(): Stream.Stream<TurnPart, Failure> {
    return Stream.fromPull(
      Effect.succeed(
        this.#listen<Chunk.Chunk<TurnPart>, Option.Option<Failure>>(
          (parts) => Effect.succeed(Chunk.fromIterable(parts)),
          Exit.match({
            onFailure: (cause) => Effect.mapError(Effect.failCause(cause), Option.some),
            onSuccess: () => Effect.fail(Option.none())
          })
        )
      )
    )
  }

  /** Calls `on` with what has come, each time that something has, until it returns an effect. */
  #listen<A, E>(
    on: (parts: ReadonlyArray<TurnPart>) => Effect.Effect<A, E> | null,
    atEnd: (exit: Exit.Exit<void, Failure>) => Effect.Effect<A, E>
  ): Effect.Effect<A, E> {
    return Effect.async((resume) => {
      const look = () => {
        const then = this.#told(on) ?? this.#ended(atEnd)
        if (then === null) return
        this.#reader = null
        resume(then)
      }
      this.#reader = look
      if (this.#waiting.length > 0 || this.#end !== null || this.#gone) look()
      return Effect.sync(() => {
        if (this.#reader === look) this.#reader = null
      })
    })
  }

  #told<A, E>(
    on: (parts: ReadonlyArray<TurnPart>) => Effect.Effect<A, E> | null
  ): Effect.Effect<A, E> | null {
    const parts = this.#waiting
    if (parts.length === 0) return null
    this.#waiting = []
    this.#relieve()
    try {
      return on(parts)
    } catch (defect) {
      return Effect.die(defect)
    }
  }

  #ended<A, E>(atEnd: (exit: Exit.Exit<void, Failure>) => Effect.Effect<A, E>): Effect.Effect<A, E> | null {
    if (this.#gone) return atEnd(Exit.void)
    return this.#end === null ? null : atEnd(this.#end)
  }

  /** What else this moment brings is told with it. */
  #wake(): void {
    if (this.#reader === null || this.#awake) return
    this.#awake = true
    queueMicrotask(() => {
      this.#awake = false
      this.#reader?.()
    })
  }

  readonly #room = Effect.async<void>((resume) => {
    if (this.#gone || this.#waiting.length <= backlog) return resume(Effect.void)
    const once = () => resume(Effect.void)
    this.#writers.add(once)
    return Effect.sync(() => this.#writers.delete(once))
  })

  #relieve(): void {
    for (const resume of this.#writers) resume()
    this.#writers.clear()
  }
}
