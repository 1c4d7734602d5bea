/**
 * Buffers the parts of a running turn, for clients that join late: they read from the first part and then follow the
 * turn.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { TurnFailure, TurnPart } from "../../domain/chat/ChatTurn.ts"

/** Maximum characters of text, and maximum other parts, that are kept of one turn. */
const maxCharacters = 1_048_576
const maxParts = 4_096
/** Maximum characters of one text block. Appending to a block copies it, so blocks are kept short. */
const blockLength = 4_096

/** Position of a reader: whole parts read, and characters read of the text after them. */
interface Position {
  readonly parts: number
  readonly characters: number
}

/** Pieces of text are merged into blocks, so that the bound holds for any number of pieces. */
export class PartBuffer {
  private parts: Array<TurnPart> = []
  private text = 0
  private end: Exit.Exit<void, TurnFailure> | null = null
  private readonly waiting = new Set<() => void>()
  private isDropped = false
  /** Number of changes so far. */
  private changes = 0

  /** False once the turn has emitted more than is kept: the buffer was then dropped. */
  get isComplete(): boolean {
    return !this.isDropped
  }

  append(part: TurnPart): void {
    if (this.isDropped) return
    const last = this.parts.at(-1)
    if (part._tag === "TextDelta") this.text += part.delta.length
    if (part._tag === "TextDelta" && last?._tag === "TextDelta" && last.delta.length < blockLength) {
      this.parts[this.parts.length - 1] = { _tag: "TextDelta", delta: last.delta + part.delta }
    } else this.parts.push(part)
    if (this.text > maxCharacters || this.parts.length > maxParts) {
      this.isDropped = true
      this.parts = []
    }
    this.wake()
  }

  /** Ends the buffer: no more parts come. */
  close(exit: Exit.Exit<void, TurnFailure>): void {
    this.end = exit
    this.wake()
  }

  private wake(): void {
    this.changes += 1
    for (const resume of this.waiting) resume()
    this.waiting.clear()
  }

  /** Waits until there are more changes than `seen`. The buffer may have changed since the caller read it. */
  private readonly changedSince = (seen: number) =>
    Effect.async<void>((resume) => {
      const once = () => resume(Effect.void)
      if (this.changes > seen) return once()
      this.waiting.add(once)
      return Effect.sync(() => this.waiting.delete(once))
    })

  /** Parts after the position, and the reader's next position. */
  private partsAfter({ parts, characters }: Position): readonly [ReadonlyArray<TurnPart>, Position] {
    const [first, ...rest] = this.parts.slice(parts)
    if (first === undefined) return [[], { parts, characters }]
    const cut = first._tag === "TextDelta" ? { ...first, delta: first.delta.slice(characters) } : first
    const fresh = cut._tag === "TextDelta" && cut.delta === "" ? rest : [cut, ...rest]
    const last = this.parts.at(-1)
    // The last text block may still grow.
    return last?._tag === "TextDelta"
      ? [fresh, { parts: this.parts.length - 1, characters: last.delta.length }]
      : [fresh, { parts: this.parts.length, characters: 0 }]
  }

  private next(
    position: Position
  ): Effect.Effect<readonly [Chunk.Chunk<TurnPart>, Option.Option<Position>], TurnFailure> {
    return Effect.suspend(() => {
      const [fresh, reached] = this.partsAfter(position)
      if (fresh.length > 0) return Effect.succeed([Chunk.fromIterable(fresh), Option.some(reached)] as const)
      // When the buffer was dropped, the reader ends here, and reads the rest from storage once the turn is settled.
      if (this.end !== null || this.isDropped) {
        return Effect.as(this.end ?? Exit.void, [Chunk.empty<TurnPart>(), Option.none<Position>()] as const)
      }
      return Effect.zipRight(this.changedSince(this.changes), this.next(position))
    })
  }

  /** All parts from the first one until the end of the turn, or until the buffer is no longer {@link isComplete}. */
  get stream(): Stream.Stream<TurnPart, TurnFailure> {
    return Stream.paginateChunkEffect({ parts: 0, characters: 0 }, (position: Position) =>
      this.next(position)
    )
  }
}

type Parts = Stream.Stream<TurnPart, TurnFailure>

/**
 * What the reader already has: characters of text, and parts by kind. A turn may have several steps, and its stored
 * form has one: of the steps, only the open one counts.
 */
class ReceivedParts {
  #text = 0
  readonly #counts = new Map<TurnPart["_tag"], number>()

  add(part: TurnPart): void {
    const count = this.#counts.get(part._tag) ?? 0
    if (part._tag === "TextDelta") this.#text += part.delta.length
    this.#counts.set(part._tag, part._tag === "StepStart" ? 1 : count + 1)
    if (part._tag === "StepStart") this.#counts.delete("StepEnd")
  }

  /** The rest of `part`, or none if the reader has all of it. */
  readonly remainderOf = (part: TurnPart): Option.Option<TurnPart> => {
    if (part._tag !== "TextDelta") {
      const count = this.#counts.get(part._tag) ?? 0
      this.#counts.set(part._tag, count - 1)
      return count > 0 ? Option.none() : Option.some(part)
    }
    const delta = part.delta.slice(this.#text)
    this.#text = Math.max(0, this.#text - part.delta.length)
    return delta === "" ? Option.none() : Option.some({ ...part, delta })
  }
}

/** The parts of `buffer`. If it could not keep the whole turn, the remaining parts come from `rest`. */
export const streamWithRest = (buffer: PartBuffer, rest: Parts): Parts =>
  Stream.suspend(() => {
    const received = new ReceivedParts()
    return Stream.concat(
      Stream.tap(buffer.stream, (part) => Effect.sync(() => received.add(part))),
      Stream.suspend(() => (buffer.isComplete ? Stream.empty : Stream.filterMap(rest, received.remainderOf)))
    )
  })
