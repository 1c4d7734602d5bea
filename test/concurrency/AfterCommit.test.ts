import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe } from "vitest"
import { afterCommit, withCommit } from "../../src/concurrency/AfterCommit.ts"

describe("What follows a commit", () => {
  const recorded = Effect.sync(() => {
    const seen: Array<string> = []
    const record = (what: string) => Effect.sync(() => void seen.push(what))
    return { seen, record, later: (what: string) => afterCommit(record(what)) }
  })

  it.effect("runs after it, and at once where there is no transaction", () =>
    Effect.gen(function* () {
      const { later, record, seen } = yield* recorded
      yield* later("at once")
      yield* withCommit(Effect.zipRight(later("after"), record("within")))
      yield* later("at once again")
      expect(seen).toEqual(["at once", "within", "after", "at once again"])
    })
  )

  it.effect("does not run after a failure or an interruption", () =>
    Effect.gen(function* () {
      const { later, seen } = yield* recorded
      for (const end of [Effect.fail("refused"), Effect.die("broken"), Effect.interrupt])
        yield* Effect.exit(withCommit(Effect.zipRight(later("after"), end)))
      expect(seen).toEqual([])
    })
  )

  it.live("ends at its time-out", () =>
    Effect.gen(function* () {
      const { record, seen } = yield* recorded
      const slow = Effect.sleep("1 minute").pipe(
        Effect.timeoutTo({
          duration: "10 millis",
          onSuccess: () => "slept",
          onTimeout: () => "ended"
        })
      )
      yield* withCommit(afterCommit(Effect.flatMap(slow, record)))
      expect(seen).toEqual(["ended"])
    })
  )

  it.effect("waits for the outermost of nested transactions, and leaves out those of one that failed", () =>
    Effect.gen(function* () {
      const { later, record, seen } = yield* recorded
      yield* withCommit(
        Effect.gen(function* () {
          yield* withCommit(later("inner"))
          yield* Effect.exit(withCommit(Effect.zipRight(later("failed"), Effect.fail("refused"))))
          yield* later("outer")
          yield* record("within")
        })
      )
      expect(seen).toEqual(["within", "inner", "outer"])
    })
  )
})
