import * as Effect from "effect/Effect"
import { monotonicMillis } from "../domain/MonotonicClock.ts"
import { yieldToEventLoop } from "./YieldToEventLoop.ts"

/** Milliseconds that steps run between two yields. */
const sliceMillis = 5

/** Runs `steps` to their end, and yields to the event loop every few milliseconds, so that requests are served. */
export const inSlices = <A>(steps: Generator<unknown, A>): Effect.Effect<A> =>
  Effect.gen(function* () {
    let begun = yield* monotonicMillis
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value
      if ((yield* monotonicMillis) - begun < sliceMillis) continue
      yield* yieldToEventLoop
      begun = yield* monotonicMillis
    }
  })
