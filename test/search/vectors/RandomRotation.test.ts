import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { RandomRotation } from "../../../src/search/vectors/RandomRotation.ts"

const numbers = FastCheck.array(FastCheck.double({ min: -1, max: 1, noNaN: true }), {
  minLength: 1,
  maxLength: 100
}).map((values) => Float32Array.from(values))

const dot = (one: Float32Array, other: Float32Array) =>
  one.reduce((sum, value, place) => sum + value * (other[place] ?? 0), 0)

describe("RandomRotation", () => {
  it("keeps lengths and products, whatever the number of dimensions", () => {
    FastCheck.assert(
      FastCheck.property(numbers, numbers, FastCheck.constantFrom(104, 136), (one, other, dimensions) => {
        const rotation = new RandomRotation(dimensions)
        const rotated = Float32Array.from(rotation.rotate(one, 0, one.length))
        const beside = rotation.rotate(other, 0, other.length)
        expect(dot(rotated, rotated)).toBeCloseTo(dot(one, one), 3)
        expect(dot(rotated, beside)).toBeCloseTo(dot(one, other), 3)
      })
    )
  })

  it("makes of one number a little of each", () => {
    for (const size of [8, 384, 768, 1_024, 1_536, 3_072]) {
      for (let place = 0; place < size; place += Math.ceil(size / 7)) {
        const one = new Float32Array(size)
        one[place] = 1
        const signs = new RandomRotation(size)
          .rotate(one, 0, size)
          .reduce((sum, value) => sum + Math.abs(value), 0)
        // The mean of normal numbers without their signs is 0.8; of equal ones it is 1.
        if (size > 8) expect(signs / Math.sqrt(size)).toBeGreaterThan(0.7)
        expect(signs / Math.sqrt(size)).toBeLessThanOrEqual(1.000_01)
      }
    }
  })

  it("rotates nothing to nothing", () => {
    expect(new RandomRotation(0).rotate(new Float32Array(0), 0, 0).length).toBe(0)
  })
})
