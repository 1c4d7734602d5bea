import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { withOwner } from "../../../src/concurrency/CurrentOwner.ts"
import { ReportPermits } from "../../../src/usecases/conversations/ReportPermits.ts"

it.live("One tenant's reports run one at a time and do not delay another tenant's", () =>
  Effect.gen(function* () {
    const { withPermit } = yield* ReportPermits
    const end = yield* Deferred.make<void>()
    let running = 0
    const long = Effect.suspend(() => {
      running += 1
      return Deferred.await(end)
    })
    const all = yield* Effect.fork(
      Effect.all(
        Array.from({ length: 20 }, () => withOwner("busy")(withPermit(long))),
        { concurrency: "unbounded" }
      )
    )
    yield* Effect.sleep("20 millis")
    expect(running).toBe(1)
    expect(yield* withOwner("other")(withPermit(Effect.succeed("done")))).toBe("done")
    yield* Deferred.succeed(end, undefined)
    yield* Fiber.join(all)
    expect(running).toBe(20)
  }).pipe(Effect.provide(ReportPermits.Default))
)
