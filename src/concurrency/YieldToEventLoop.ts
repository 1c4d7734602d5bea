import * as Effect from "effect/Effect"

/** Lets events be handled amid long work. Effect's own yielding does not: it only lets other fibers run. */
export const yieldToEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})
