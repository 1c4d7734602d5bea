/**
 * Text on its way to one client: what comes while nobody takes leaves together with the next. A merge of streams and each
 * of its stages would cost a stream of frames more steps than the turn that it tells of.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** UTF-16 units that may wait for a slow client before the writer has to. */
const backlog = 1_048_576

const utf8 = new TextEncoder()

type Taken = Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<never>>

const chunkOf = (text: string): Taken => Effect.succeed(Chunk.of(utf8.encode(text)))

export class Relay {
  #waiting = ""
  #ended = false
  #taker: ((taken: Taken) => void) | null = null
  #room: (() => void) | null = null

  /** Sends at once; what is returned waits while the client is too far behind. One writer at a time. */
  push(text: string): Effect.Effect<void> {
    this.add(text)
    return this.#waiting.length <= backlog ? Effect.void : this.#drained
  }

  /** For what is too small to wait. */
  add(text: string): void {
    if (text === "") return
    this.#waiting += text
    this.#hand()
  }

  /** Nothing follows. */
  end(): void {
    this.#ended = true
    this.#hand()
  }

  /** All that waits, as UTF-8; fails with none at the end. One taker at a time. */
  readonly take: Taken = Effect.async((resume) => {
    this.#taker = resume
    this.#hand()
    return Effect.sync(() => {
      this.#taker = null
    })
  })

  readonly #drained = Effect.async<void>((resume) => {
    if (this.#waiting.length <= backlog) return resume(Effect.void)
    this.#room = () => resume(Effect.void)
    return Effect.sync(() => {
      this.#room = null
    })
  })

  #hand(): void {
    const taker = this.#taker
    if (taker === null || (this.#waiting === "" && !this.#ended)) return
    this.#taker = null
    const text = this.#waiting
    this.#waiting = ""
    taker(text === "" ? Effect.fail(Option.none()) : chunkOf(text))
    const room = this.#room
    this.#room = null
    room?.()
  }
}
