import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { withOwner } from "../../../src/concurrency/CurrentOwner.ts"
import { withSlot } from "../../../src/http/server/UploadSlots.ts"

it.effect(
  "Slow uploads of one tenant leave slots for others, and its own are refused if they wait too long",
  () =>
    Effect.gen(function* () {
      let begun = 0
      const slow = Effect.zipRight(
        Effect.sync(() => begun++),
        Effect.never
      ).pipe(withSlot, Effect.either, withOwner("ten_slow"))
      const uploads = yield* Effect.forEach(Array.from({ length: 40 }), () => Effect.fork(slow))
      yield* Effect.yieldNow()
      expect(begun).toBe(4)
      expect(yield* withOwner("ten_other")(withSlot(Effect.succeed("taken in")))).toBe("taken in")
      yield* TestClock.adjust("1 minute")
      const refused = yield* Effect.forEach(uploads.slice(4), (upload) => Fiber.join(upload))
      expect(new Set(refused.map((one) => (one._tag === "Left" ? one.left._tag : "begun")))).toEqual(
        new Set(["SERVICE_UNAVAILABLE"])
      )
      yield* Fiber.interruptAll(uploads)
    })
)
