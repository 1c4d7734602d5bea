import * as Effect from "effect/Effect"

/** Yields to the event loop during long work. Effect's own yield only lets other fibers run. */
export const yieldToEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})
