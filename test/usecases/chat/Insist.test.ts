import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { insist } from "../../../src/usecases/chat/Insist.ts"

it.effect("A failed turn is settled once the database is back, and nobody waits for it", () =>
  Effect.gen(function* () {
    const attempts = yield* Ref.make(0)
    const ending = Effect.flatMap(
      Ref.updateAndGet(attempts, (count) => count + 1),
      (count) => (count < 4 ? Effect.die("The database is away.") : Effect.void)
    )
    yield* insist(ending)
    expect(yield* Ref.get(attempts)).toBeLessThan(4)
    yield* TestClock.adjust("5 seconds")
    expect(yield* Ref.get(attempts)).toBe(4)
  })
)
