import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { describe, expect, it } from "vitest"
import { retryAfter } from "../../src/domain/RetryAfter.ts"

const now = Date.UTC(2026, 0, 1)
const millis = (headers: Record<string, string>) =>
  Option.getOrNull(Option.map(retryAfter(headers, now), Duration.toMillis))

describe("RetryAfter", () => {
  it("reads seconds, a date and OpenAI's milliseconds, of which the last is the most precise", () => {
    expect(millis({ "retry-after": "3" })).toBe(3_000)
    expect(millis({ "retry-after": "Thu, 01 Jan 2026 00:00:07 GMT" })).toBe(7_000)
    expect(millis({ "retry-after": "1", "retry-after-ms": "250" })).toBe(250)
  })

  it("takes a date that has passed for no pause, and no pause for longer than an hour", () => {
    expect(millis({ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" })).toBe(0)
    expect(millis({ "retry-after": "999999" })).toBe(3_600_000)
  })

  it("finds nothing in what makes no sense", () => {
    for (const text of ["", "soon", "NaN", "Infinity"]) expect(millis({ "retry-after": text })).toBe(null)
    expect(millis({})).toBe(null)
  })
})
