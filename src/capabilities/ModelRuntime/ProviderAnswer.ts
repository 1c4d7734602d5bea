/** The bytes of one answer, turned into parts as they come, up to a finish or a failure. */
import * as Effect from "effect/Effect"
import type { Answered, ExchangeError } from "../Exchange.ts"
import type { ModelError, ModelPart } from "../ModelRuntime.ts"
import * as Failure from "./ProviderFailure.ts"
import { SseLines } from "./SseLines.ts"

/** Reads one answer, event by event. */
export interface Decoder {
  /** True once the answer's finish was among the parts. */
  readonly isFinished: boolean
  /** Adds what the event says to `parts`; a returned error ends the answer after them. */
  readonly read: (data: string, parts: Array<ModelPart>) => ModelError | null
  /** The provider closed the connection. */
  readonly end: (parts: Array<ModelPart>) => ModelError | null
}

type OnParts<R> = (parts: ReadonlyArray<ModelPart>) => Effect.Effect<void, never, R>

/** UTF-16 units of one event; the last one of `/responses` repeats the whole answer. */
const maxEvent = 8 * 1024 * 1024

export class Answer {
  readonly #decoder: Decoder
  readonly #lines = new SseLines(maxEvent)
  #received = false

  constructor(decoder: Decoder) {
    this.#decoder = decoder
  }

  /** Once for each answer. */
  tell<R>(answered: Answered, onParts: OnParts<R>): Effect.Effect<void, ModelError, R> {
    const next: Effect.Effect<void, ModelError | ExchangeError, R> = answered.each((chunks) => {
      const parts: Array<ModelPart> = []
      const failure = chunks === null ? this.#end(parts) : this.#read(chunks, parts)
      const told = parts.length === 0 ? Effect.void : onParts(parts)
      if (failure !== null) return Effect.zipRight(told, Effect.fail(failure))
      // The finish may come before the end of the connection, which the next request is to use.
      if (this.#decoder.isFinished) return Effect.zipRight(told, answered.enough)
      return told === Effect.void ? null : Effect.flatMap(told, () => next)
    })
    return Effect.catchTag(next, "ExchangeError", (error) => this.#broken(error))
  }

  #read(chunks: ReadonlyArray<Uint8Array>, parts: Array<ModelPart>): ModelError | null {
    this.#received = true
    for (const bytes of chunks) {
      const events = this.#lines.push(bytes)
      if (events === null) return Failure.malformed("an event is too long")
      for (const data of events) {
        const failure = this.#decoder.read(data, parts)
        if (failure !== null || this.#decoder.isFinished) return failure
      }
    }
    return null
  }

  #end(parts: Array<ModelPart>): ModelError | null {
    // Some providers end with the last line and no blank one; a frame cut in two is a cut answer.
    const rest = this.#lines.end()
    if (rest !== null) this.#decoder.read(rest, parts)
    return this.#decoder.isFinished ? null : this.#decoder.end(parts)
  }

  #broken(error: ExchangeError): Effect.Effect<never, ModelError> {
    return Effect.fail(Failure.fromTransport(error, this.#received))
  }
}
