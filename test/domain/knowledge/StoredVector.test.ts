import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import {
  decodeInto,
  decodeVector,
  encodeFloat32,
  encodeVector,
  roundVector,
  vectorText
} from "../../../src/domain/knowledge/StoredVector.ts"

/** Numbers of all sizes that float16 has, and smaller ones. */
const number = FastCheck.tuple(
  FastCheck.double({ min: -1, max: 1, noNaN: true }),
  FastCheck.integer({ min: -30, max: 15 })
).map(([share, exponent]) => Math.fround(share * 2 ** exponent))
const vector = FastCheck.array(number, { minLength: 1, maxLength: 64 }).map((all) => Float32Array.from(all))

const float32 = (all: Float32Array) => new Uint8Array(all.buffer.slice(0))

describe("A stored vector", () => {
  it("has each number rounded to the nearest float16: eleven significant bits, or multiples of 2⁻²⁴", () => {
    FastCheck.assert(
      FastCheck.property(vector, (all) => {
        for (const [place, rounded] of roundVector(all).entries()) {
          const exact = all[place] ?? 0
          const step = Math.max(2 ** -24, 2 ** (Math.floor(Math.log2(Math.abs(exact))) - 10))
          expect(Math.abs(rounded - exact)).toBeLessThanOrEqual(step / 2)
          expect(Math.abs(rounded) % 2 ** -24).toBe(0)
        }
      })
    )
  })

  it("rounds to even between two neighbours, and stays finite", () => {
    const between = [1 + 2 ** -11, 1 + 3 * 2 ** -11, 2 ** -25, 3 * 2 ** -25, 65_504, 65_520, -1e30, 0]
    expect(Array.from(roundVector(Float32Array.from(between)))).toEqual([
      1,
      1 + 2 ** -9,
      0,
      2 ** -23,
      65_504,
      65_504,
      -65_504,
      0
    ])
  })

  it("is read from its bytes as it was rounded, and rounding it again changes nothing", () => {
    FastCheck.assert(
      FastCheck.property(vector, (all) => {
        const rounded = roundVector(all)
        expect(decodeVector(encodeVector(all))).toEqual(rounded)
        expect(encodeVector(rounded)).toEqual(encodeVector(all))
      })
    )
  })

  it("is the number of its dimensions, a zero and its numbers, big-endian, as pgvector sends a halfvec", () => {
    expect(Array.from(encodeVector(Float32Array.from([1, -2, 0.5])))).toEqual([
      0, 3, 0, 0, 0x3c, 0, 0xc0, 0, 0x38, 0
    ])
  })

  it("has a text that stands for the same numbers", () => {
    FastCheck.assert(
      FastCheck.property(vector, (all) => {
        const read = Float32Array.from(JSON.parse(vectorText(all)) as ReadonlyArray<number>)
        for (const [place, rounded] of roundVector(all).entries()) {
          expect(roundVector(read)[place]).toBeCloseTo(rounded, 10)
        }
      })
    )
  })

  it("is also read from the little-endian float32 of 0.1.0, and is then rounded", () => {
    FastCheck.assert(
      FastCheck.property(vector, (all) => {
        expect(encodeFloat32(all)).toEqual(float32(all))
        expect(decodeVector(float32(all))).toEqual(roundVector(all))
      })
    )
  })

  it("is not read as one of other dimensions", () => {
    FastCheck.assert(
      FastCheck.property(vector, FastCheck.integer({ min: 1, max: 64 }), (all, dimensions) => {
        const into = new Float32Array(dimensions)
        for (const bytes of [encodeVector(all), float32(all)]) {
          expect(decodeInto(bytes, into)).toBe(dimensions === all.length)
        }
      })
    )
  })
})
