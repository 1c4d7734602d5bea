/** Groups questions beside requests: the thread serves those between two steps of the grouping. */
import * as Effect from "effect/Effect"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import { monotonicMillis } from "../../domain/Elapsed.ts"
import { type AskedQuestion, grouped } from "../../search/QuestionGroups.ts"

/** Milliseconds of steps before the fiber yields to the event loop. */
const millisPerYield = 5

export const groupQuestions = <A>(asked: ReadonlyArray<AskedQuestion<A>>) =>
  Effect.gen(function* () {
    const steps = grouped(asked)
    let begun = yield* monotonicMillis
    for (;;) {
      const { done, value } = steps.next()
      if (done === true) return value
      if ((yield* monotonicMillis) - begun < millisPerYield) continue
      yield* yieldToEventLoop
      begun = yield* monotonicMillis
    }
  })
