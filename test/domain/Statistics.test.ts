import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import {
  bootstrap,
  mean,
  percentile,
  signTest,
  wilson
} from "../../src/domain/agents/evaluation/Statistics.ts"

const share = FastCheck.integer({ min: 1, max: 500 }).chain((of) =>
  FastCheck.tuple(FastCheck.integer({ min: 0, max: of }), FastCheck.constant(of))
)
const values = FastCheck.array(FastCheck.double({ min: -1, max: 1, noNaN: true }), {
  minLength: 1,
  maxLength: 40
})

describe("Wilson's interval", () => {
  it("is the one of the literature", () => {
    const { high, low } = wilson(8, 10)
    expect([low.toFixed(4), high.toFixed(4)]).toEqual(["0.4902", "0.9433"])
    expect(wilson(0, 10)).toEqual({ low: 0, high: expect.closeTo(0.2775, 4) })
    expect(wilson(0, 0)).toEqual({ low: 0, high: 1 })
  })

  it.prop(
    "holds the share, stays within 0 and 1, and mirrors for the failures",
    [share],
    ([[successes, of]]) => {
      const { high, low } = wilson(successes, of)
      expect(low).toBeGreaterThanOrEqual(0)
      expect(low).toBeLessThanOrEqual(successes / of)
      expect(high).toBeGreaterThanOrEqual(successes / of)
      expect(high).toBeLessThanOrEqual(1)
      const mirrored = wilson(of - successes, of)
      expect(mirrored.low).toBeCloseTo(1 - high, 9)
      expect(mirrored.high).toBeCloseTo(1 - low, 9)
    }
  )

  it.prop("is narrower with four times the cases", [share], ([[successes, of]]) => {
    const width = ({ high, low }: { readonly high: number; readonly low: number }) => high - low
    expect(width(wilson(4 * successes, 4 * of))).toBeLessThan(width(wilson(successes, of)))
  })
})

describe("The bootstrap interval", () => {
  it.prop("is the same every time, and within the values", [values], ([given]) => {
    const { high, low } = bootstrap(given)
    expect(bootstrap(given)).toEqual({ high, low })
    expect(low).toBeLessThanOrEqual(high)
    expect(low).toBeGreaterThanOrEqual(Math.min(...given) - 1e-9)
    expect(high).toBeLessThanOrEqual(Math.max(...given) + 1e-9)
  })

  it("leaves 0 out for many losses and keeps it for one", () => {
    const differences = (lost: number, of: number) =>
      Array.from({ length: of }, (_, place) => (place < lost ? -1 : 0))
    expect(bootstrap(differences(1, 30)).high).toBe(0)
    expect(bootstrap(differences(12, 30)).high).toBeLessThan(0)
    expect(bootstrap([0, 0, 0])).toEqual({ low: 0, high: 0 })
    expect(bootstrap([0.1, 0.1])).toEqual({ low: expect.closeTo(0.1, 12), high: expect.closeTo(0.1, 12) })
  })
})

describe("A percentile", () => {
  it("is the value at its rank, and none of nothing", () => {
    expect(percentile([], 0.5)).toBeNull()
    expect(percentile([4, 1, 3, 2], 0.5)).toBe(2)
    expect(percentile([4, 1, 3, 2], 0.95)).toBe(4)
  })

  it.prop("is one of the values, and at least its share of them is no more", [values], ([given]) => {
    for (const part of [0.5, 0.95]) {
      const found = percentile(given, part)
      expect(given).toContain(found)
      expect(given.filter((value) => value <= (found ?? 0)).length).toBeGreaterThanOrEqual(
        part * given.length
      )
    }
    expect(mean(given)).toBeLessThanOrEqual(Math.max(...given) + 1e-9)
  })
})

describe("The sign test", () => {
  it("is that of a fair coin", () => {
    expect(signTest(0, 0)).toBe(1)
    expect(signTest(5, 0)).toBeCloseTo(1 / 32, 12)
    expect(signTest(4, 1)).toBeCloseTo(6 / 32, 12)
    expect(signTest(0, 7)).toBeCloseTo(1, 12)
    expect(signTest(1_000, 1_000)).toBeCloseTo(0.5089, 4)
    expect(signTest(2_000, 0)).toBe(0)
  })
})
