import { describe, expect, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import type { Arrival } from "../../../src/domain/channels/Channel.ts"
import * as GroupCommit from "../../../src/usecases/channels/GroupCommit.ts"

const arrival = (messageId: string): Arrival => ({
  raw: {},
  event: {
    _tag: "Message",
    channel: "whatsapp",
    accountId: "1",
    messageId,
    from: [{ kind: "phone", value: "491700000000" }],
    kind: "text",
    text: "Hello",
    media: [],
    standby: false,
    timestamp: DateTime.unsafeMake(0)
  }
})

const allNew = (arrivals: ReadonlyArray<Arrival>) => Effect.succeed(arrivals.map(() => true))

describe("Deliveries", () => {
  it.scoped("that arrive in one poll of the sockets share a transaction", () =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const { add } = yield* GroupCommit.make((arrivals) => {
        sizes.push(arrivals.length)
        return allNew(arrivals)
      })
      const outcomes = yield* Effect.forEach(
        ["a", "b", "c"],
        (id) =>
          Effect.async<GroupCommit.Outcome>((resume) =>
            add([arrival(id)], 100, (outcome) => resume(Effect.succeed(outcome)))
          ),
        { concurrency: "unbounded" }
      )
      expect(outcomes).toEqual(Array.from({ length: 3 }, () => Exit.succeed([true])))
      expect(sizes).toEqual([3])
    })
  )

  it.scoped("delay the processing of earlier ones by at most a fifth of a second", () =>
    Effect.gen(function* () {
      const { add, quietPeriod } = yield* GroupCommit.make(() => Effect.never)
      yield* quietPeriod
      add([arrival("a")], 100, () => {})
      const waiting = yield* Effect.fork(quietPeriod)
      yield* TestClock.adjust("199 millis")
      expect(yield* Fiber.poll(waiting)).toEqual(Option.none())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(waiting)
    })
  )

  it.scoped("no longer delay anything once they are answered and no other follows", () =>
    Effect.gen(function* () {
      const { add, quietPeriod } = yield* GroupCommit.make(allNew)
      yield* Effect.async<void>((resume) => add([arrival("a")], 100, () => resume(Effect.void)))
      const waiting = yield* Effect.fork(quietPeriod)
      yield* TestClock.adjust("5 millis")
      yield* Fiber.join(waiting)
    })
  )
})
