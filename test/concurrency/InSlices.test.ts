import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { inSlices } from "../../src/concurrency/InSlices.ts"

const busy = (millis: number) => {
  const until = performance.now() + millis
  while (performance.now() < until);
}

function* steps(count: number, millis: number): Generator<void, string> {
  for (let step = 0; step < count; step++) {
    busy(millis)
    yield
  }
  return "done"
}

/** Number of turns of the event loop while `work` runs. */
const turnsDuring = <A>(work: Effect.Effect<A>) =>
  Effect.gen(function* () {
    let turns = 0
    let next = setImmediate(function turn() {
      turns++
      next = setImmediate(turn)
    })
    yield* work
    clearImmediate(next)
    return turns
  })

it.live("Long work in small steps lets the event loop go on every few milliseconds", () =>
  Effect.gen(function* () {
    expect(yield* inSlices(steps(3, 0))).toBe("done")
    expect(yield* turnsDuring(inSlices(steps(100, 1)))).toBeGreaterThanOrEqual(10)
  })
)
