/** The bytes of one answer, turned into parts as they are pulled, under deadlines and up to a finish or a failure. */
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as Chunk from "effect/Chunk"
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ModelError, ModelPart } from "../ModelRuntime.ts"
import * as Failure from "./ProviderFailure.ts"
import { SseLines } from "./SseLines.ts"

/** Reads one answer, event by event. */
export interface Decoder {
  /** True once the answer's finish was among the parts. */
  readonly isFinished: boolean
  /** Adds what the event says to `parts`; a returned error ends the stream after them. */
  readonly read: (data: string, parts: Array<ModelPart>) => ModelError | null
  /** The provider closed the connection. */
  readonly end: (parts: Array<ModelPart>) => ModelError | null
}

/** Longest waits in milliseconds, for the first bytes and for each that follow. */
export interface Deadlines {
  readonly first: number
  readonly next: number
}

type Pull<A, E> = Effect.Effect<A, Option.Option<E>>
type BytesPull = Pull<Chunk.Chunk<Uint8Array>, HttpClientError.HttpClientError>

/** UTF-16 units of one event; the last one of `/responses` repeats the whole answer. */
const maxEvent = 8 * 1024 * 1024
/** How long the end of the connection behind a finished answer is waited for. */
const patience = Duration.seconds(1)

export class Answer {
  readonly #pull: BytesPull
  readonly #decoder: Decoder
  readonly #deadlines: Deadlines
  readonly #clock: Clock.Clock
  readonly #lines = new SseLines(maxEvent)
  #failure: ModelError | null = null
  #received = false
  #closed = false
  #expired = false
  /** When the pull that now waits began to; null while the reader is busy with what it has. */
  #waitingSince: number | null = null

  constructor(pull: BytesPull, decoder: Decoder, deadlines: Deadlines, clock: Clock.Clock) {
    this.#pull = pull
    this.#decoder = decoder
    this.#deadlines = deadlines
    this.#clock = clock
  }

  /** One at a time, like every pull. */
  readonly next: Pull<Chunk.Chunk<ModelPart>, ModelError> = Effect.suspend(() => {
    if (this.#failure !== null) return Effect.fail(Option.some(this.#failure))
    if (this.#closed) return Effect.fail(Option.none())
    if (this.#decoder.isFinished) return this.#drained
    this.#waitingSince = this.#clock.unsafeCurrentTimeMillis()
    return Effect.matchEffect(this.#pull, {
      onSuccess: (bytes) => this.#emit(this.#read(bytes)),
      onFailure: (error) => this.#emit(this.#stop(error))
    })
  })

  /**
   * Ends the wait for bytes by `abort` when it takes too long. One fiber for the whole answer: a timeout around each pull
   * costs as much as all the rest of it.
   */
  readonly watch = (abort: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const limit = this.#received ? this.#deadlines.next : this.#deadlines.first
      const now = this.#clock.unsafeCurrentTimeMillis()
      const left = limit - (now - (this.#waitingSince ?? now))
      if (left > 0) return Effect.zipRight(Effect.sleep(left), this.watch(abort))
      this.#expired = true
      return abort
    })

  /** The rest of a finished answer is read and dropped, for a connection that is closed early cannot be used again. */
  get #drained(): Pull<never, ModelError> {
    return this.#pull.pipe(
      Effect.forever,
      Effect.ignore,
      Effect.timeoutOption(patience),
      Effect.zipRight(Effect.fail(Option.none()))
    )
  }

  #read(chunk: Chunk.Chunk<Uint8Array>): Array<ModelPart> {
    const parts: Array<ModelPart> = []
    this.#waitingSince = null
    this.#received = true
    for (const bytes of chunk) {
      const events = this.#lines.push(bytes)
      if (events === null) this.#failure = Failure.malformed("an event is too long")
      for (const data of events ?? []) {
        this.#failure = this.#decoder.read(data, parts)
        if (this.#failure !== null || this.#decoder.isFinished) return parts
      }
      if (this.#failure !== null) return parts
    }
    return parts
  }

  #stop(error: Option.Option<HttpClientError.HttpClientError>): Array<ModelPart> {
    const parts: Array<ModelPart> = []
    this.#waitingSince = null
    this.#closed = true
    if (this.#expired) this.#failure = this.#received ? Failure.silence() : Failure.noAnswer()
    else if (Option.isSome(error)) this.#failure = Failure.fromTransport(error.value, this.#received)
    else {
      // Some providers end with the last line and no blank one; a frame cut in two is a cut answer.
      const rest = this.#lines.end()
      if (rest !== null) this.#decoder.read(rest, parts)
      this.#failure = this.#decoder.isFinished ? null : this.#decoder.end(parts)
    }
    return parts
  }

  #emit(parts: Array<ModelPart>): Pull<Chunk.Chunk<ModelPart>, ModelError> {
    return parts.length === 0 ? this.next : Effect.succeed(Chunk.unsafeFromArray(parts))
  }
}
