import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import { AgentId, newId, typeId } from "../../src/domain/Ids.ts"

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
const latest = 2 ** 48 - 1
const milliseconds = FastCheck.integer({ min: 0, max: latest })

/** The 128 bits of an id, from the outside. */
const bitsOf = (id: string): bigint => {
  const text = id.slice(id.indexOf("_") + 1)
  return [...text].reduce((value, char) => value * 32n + BigInt(ALPHABET.indexOf(char)), 0n)
}

describe("An id", () => {
  it.prop("is its prefix, an underscore and 26 URL-safe characters", [milliseconds], ([now]) =>
    /^agt_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(typeId("agt", now))
  )

  it.prop("carries a UUIDv7: time, version and variant in their places", [milliseconds], ([now]) => {
    const bits = bitsOf(typeId("agt", now))
    expect(Number(bits >> 80n)).toBe(now)
    expect(Number((bits >> 76n) & 15n)).toBe(7)
    expect(Number((bits >> 62n) & 3n)).toBe(2)
  })

  it.prop("sorts by the time it was made", [milliseconds, milliseconds], ([one, other]) => {
    if (one < other) expect(typeId("agt", one) < typeId("agt", other)).toBe(true)
  })

  it("is never made twice, in whatever hurry", () => {
    const made = Array.from({ length: 20_000 }, () => typeId("agt", 1))
    expect(new Set(made).size).toBe(made.length)
  })

  it("has 74 bits that nobody can foretell: each is set about half of the time", () => {
    const count = 4_000
    const made = Array.from({ length: count }, () => bitsOf(typeId("agt", 1)))
    const fixed = [62n, 63n, 76n, 77n, 78n, 79n]
    for (let place = 0n; place < 80n; place++) {
      if (fixed.includes(place)) continue
      const set = made.filter((bits) => ((bits >> place) & 1n) === 1n).length
      expect(Math.abs(set / count - 0.5)).toBeLessThan(0.06)
    }
  })

  it.effect("is made from the clock, with a prefix of its own for each kind", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_700_000_000_000)
      const made = yield* Effect.all(Object.values(newId))
      const prefixes = made.map((id) => id.slice(0, id.indexOf("_")))
      expect(new Set(prefixes).size).toBe(prefixes.length)
      for (const id of made) expect(Number(bitsOf(id) >> 80n)).toBe(1_700_000_000_000)
      expect(prefixes).toEqual(
        expect.arrayContaining(["agt", "src", "job", "cnv", "msg", "usr", "run", "chk", "doc", "key", "ten"])
      )
    })
  )

  it("is any text where a caller names one, since an unknown one is a 404", () => {
    const accepts = Schema.is(AgentId)
    expect([accepts("x"), accepts("x".repeat(2_000)), accepts("")]).toEqual([true, true, false])
  })
})
