/**
 * Limits the memory of the process while a thread works. Buffers and the memory of native code are not part of the heap
 * that the limits of a thread bound.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

export interface MemoryLimit<E> {
  /** The resident memory of the process, in bytes. */
  readonly usedBytes: () => number
  /** Maximum resident memory in bytes; `before` is what the process uses at the start. */
  readonly limitOf: (before: number) => number
  readonly error: E
  readonly interval: Duration.DurationInput
}

/** Fails with `error` once the process uses more than the limit. */
export const watchMemory = <E>({
  error,
  interval,
  limitOf,
  usedBytes
}: MemoryLimit<E>): Effect.Effect<never, E> =>
  Effect.suspend(() => {
    const limit = limitOf(usedBytes())
    return Effect.suspend(() => (usedBytes() > limit ? Effect.fail(error) : Effect.void)).pipe(
      Effect.delay(interval),
      Effect.forever
    )
  })
