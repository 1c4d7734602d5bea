import { expect, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import { makeWakeUps } from "../../../src/capabilities/JobQueue/table/WakeUps.ts"

/** A worker that finds a job at each look, or at none, and how often it has looked. */
const worker = (finds: boolean) =>
  Effect.gen(function* () {
    const wakeUps = yield* makeWakeUps
    let looks = 0
    const look = Effect.suspend(() => {
      looks++
      return finds ? wakeUps.jobStarted : Effect.void
    })
    yield* Effect.forkScoped(wakeUps.run(look))
    return { announce: wakeUps.jobAnnounced, looks: () => looks }
  })

it.scoped("A worker that finds jobs looks at once for each that is announced", () =>
  Effect.gen(function* () {
    const { announce, looks } = yield* worker(true)
    for (let n = 1; n <= 20; n++) {
      yield* announce
      yield* TestClock.adjust(0)
      expect(looks()).toBe(n)
    }
  })
)

it.scoped(
  "Workers that find nothing look less often than jobs are announced, and after half a second at the latest",
  () =>
    Effect.gen(function* () {
      const { announce, looks } = yield* worker(false)
      for (let n = 0; n < 500; n++) {
        yield* announce
        yield* TestClock.adjust("10 millis")
      }
      // Five seconds: fewer than ten looks would mean delays of more than half a second.
      expect(looks()).toBeGreaterThanOrEqual(10)
      expect(looks()).toBeLessThan(100)
      for (let n = 0; n < 20; n++) {
        yield* TestClock.adjust("1 second")
        const before = looks()
        yield* announce
        yield* TestClock.adjust("500 millis")
        expect(looks()).toBe(before + 1)
      }
    })
)

it.scoped("A worker that finds jobs again soon looks at once again", () =>
  Effect.gen(function* () {
    const wakeUps = yield* makeWakeUps
    let finds = false
    let looks = 0
    yield* Effect.forkScoped(
      wakeUps.run(
        Effect.suspend(() => {
          looks++
          return finds ? wakeUps.jobStarted : Effect.void
        })
      )
    )
    const announceAndWait = (wait: Duration.DurationInput) =>
      Effect.zipRight(wakeUps.jobAnnounced, TestClock.adjust(wait))
    for (let n = 0; n < 10; n++) yield* announceAndWait("500 millis")
    finds = true
    for (let n = 0; n < 10; n++) yield* announceAndWait("500 millis")
    const before = looks
    yield* announceAndWait(0)
    expect(looks).toBe(before + 1)
  })
)
