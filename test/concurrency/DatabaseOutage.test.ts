import { SqlError } from "@effect/sql/SqlError"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { isAnswerLost, isOutage, retryDuringOutage } from "../../src/concurrency/DatabaseOutage.ts"

const failed = (cause: unknown) => new SqlError({ cause, message: "Failed to execute statement" })
const coded = (code: string) => failed(Object.assign(new Error("away"), { code }))

describe("A defect of the database", () => {
  it.each(["57P01", "57P03", "08006", "53100", "53300", "ECONNREFUSED", "ECONNRESET", "EPIPE"])(
    "is an outage when its code is %s",
    (code) => expect(isOutage(coded(code))).toBe(true)
  )
  it.each([
    "Connection terminated unexpectedly",
    "Connection terminated due to connection timeout",
    "timeout exceeded when trying to connect"
  ])("is an outage when the driver says: %s", (message) =>
    expect(isOutage(failed(new Error(message)))).toBe(true)
  )

  it.each(["23505", "42601", "22P05", "40P01", "57014"])("is not an outage when its code is %s", (code) =>
    expect(isOutage(coded(code))).toBe(false)
  )
  it("is not an outage if another service failed", () => {
    expect(isOutage(Object.assign(new Error("Connection terminated"), { code: "57P01" }))).toBe(false)
    expect(isOutage(failed(null))).toBe(false)
    expect(isOutage(undefined)).toBe(false)
  })
})

describe("The answer to a statement", () => {
  it("is lost when the connection breaks in use", () => {
    expect(["ECONNRESET", "EPIPE"].every((code) => isAnswerLost(coded(code)))).toBe(true)
    expect(isAnswerLost(failed(new Error("Connection terminated unexpectedly")))).toBe(true)
  })
  it("is not lost when the server refuses the statement, or is not reached", () => {
    expect(
      ["57P01", "57P03", "53300", "ECONNREFUSED", "ENOTFOUND"].some((code) => isAnswerLost(coded(code)))
    ).toBe(false)
    for (const message of [
      "Connection terminated due to connection timeout",
      "timeout exceeded when trying to connect"
    ])
      expect(isAnswerLost(failed(new Error(message)))).toBe(false)
  })
})

const countAttempts = (defect: unknown) =>
  Effect.map(Ref.make(0), (attempts) => ({
    attempts,
    failing: Effect.zipRight(
      Ref.update(attempts, (count) => count + 1),
      Effect.die(defect)
    )
  }))

describe("An effect that dies of an outage", () => {
  it.effect("is repeated, at last once a second, and dies of it after 20 seconds", () =>
    Effect.gen(function* () {
      const { attempts, failing } = yield* countAttempts(coded("57P03"))
      const fiber = yield* Effect.fork(Effect.sandbox(retryDuringOutage(failing)))
      yield* TestClock.adjust("10 seconds")
      expect(yield* Ref.get(attempts)).toBe(13)
      yield* TestClock.adjust("12 seconds")
      expect(Exit.isFailure(yield* Fiber.await(fiber))).toBe(true)
      expect(yield* Ref.get(attempts)).toBe(24)
    })
  )

  it.effect("can be interrupted between two attempts, also where it cannot itself", () =>
    Effect.gen(function* () {
      const { failing } = yield* countAttempts(coded("ECONNREFUSED"))
      const fiber = yield* Effect.fork(Effect.uninterruptible(retryDuringOutage(failing)))
      yield* TestClock.adjust("1 second")
      expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
    })
  )

  it.effect("is not repeated when it dies of anything else", () =>
    Effect.gen(function* () {
      const { attempts, failing } = yield* countAttempts(coded("23505"))
      expect(Exit.isFailure(yield* Effect.exit(retryDuringOutage(failing)))).toBe(true)
      expect(yield* Ref.get(attempts)).toBe(1)
    })
  )
})
