import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import { retryUntilWritten } from "../../../src/usecases/chat/RetryUntilWritten.ts"

it.scoped("A failed turn is settled once the database is available again, without blocking its caller", () =>
  Effect.gen(function* () {
    const attempts = yield* Ref.make(0)
    const ending = Effect.flatMap(
      Ref.updateAndGet(attempts, (count) => count + 1),
      (count) => (count < 4 ? Effect.die("The database is away.") : Effect.void)
    )
    yield* retryUntilWritten(yield* Effect.scope)(ending)
    expect(yield* Ref.get(attempts)).toBeLessThan(4)
    yield* TestClock.adjust("5 seconds")
    expect(yield* Ref.get(attempts)).toBe(4)
  })
)

it.effect("The retries of a failed turn end with the scope of the service", () =>
  Effect.gen(function* () {
    const attempts = yield* Ref.make(0)
    const scope = yield* Scope.make()
    const ending = Effect.zipRight(
      Ref.update(attempts, (count) => count + 1),
      Effect.die("The database is away.")
    )
    yield* retryUntilWritten(scope)(ending)
    yield* TestClock.adjust("2 seconds")
    yield* Scope.close(scope, Exit.void)
    const made = yield* Ref.get(attempts)
    yield* TestClock.adjust("1 minute")
    expect(yield* Ref.get(attempts)).toBe(made)
  })
)
