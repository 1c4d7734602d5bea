import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { roundVector } from "../../../src/domain/knowledge/StoredVector.ts"
import { RandomRotation } from "../../../src/search/vectors/RandomRotation.ts"
import { Vectors } from "../../../src/search/vectors/Vectors.ts"

const unit = (values: ReadonlyArray<number>) => {
  const norm = Math.hypot(...values)
  return Float32Array.from(values, (value) => (norm === 0 ? 0 : value / norm))
}
const bytes = (vector: Float32Array) => new Uint8Array(vector.buffer.slice(0))
const dot = (one: Float32Array, other: Float32Array) =>
  one.reduce((sum, value, place) => sum + value * (other[place] ?? 0), 0)

const size = 37
const vector = FastCheck.array(FastCheck.double({ min: -1, max: 1, noNaN: true }), {
  minLength: size,
  maxLength: size
}).map(unit)
/** Of several groups of sixteen, rounded as they are stored. */
const optional = FastCheck.array(FastCheck.option(vector.map(roundVector)), { maxLength: 50, size: "max" })

const filled = (all: ReadonlyArray<Float32Array | null>) => {
  const vectors = new Vectors(size)
  for (const [slot, one] of all.entries()) if (one !== null) vectors.set(slot, bytes(one))
  return vectors
}

describe("Vectors", () => {
  it("computes exact cosines of the slots that have a vector", () => {
    FastCheck.assert(
      FastCheck.property(optional, vector, (all, query) => {
        const vectors = filled(all)
        expect(vectors.count).toBe(all.filter((one) => one !== null).length)
        for (const [slot, one] of all.entries()) {
          expect(vectors.has(slot)).toBe(one !== null)
          if (one !== null) expect(vectors.cosine(slot, query)).toBeCloseTo(dot(one, query), 6)
        }
      })
    )
  })

  it("estimates a cosine by the signs of the rotated vector, and none where there is no vector", () => {
    FastCheck.assert(
      FastCheck.property(optional, vector, (all, query) => {
        const { cosine, slack } = filled(all).estimates(query, all.length)
        const rotation = new RandomRotation(Math.ceil(size / 8) * 8)
        const asked = Float32Array.from(rotation.rotate(query, 0, size))
        for (const [slot, one] of all.entries()) {
          if (one === null) {
            expect(cosine[slot]).toBeNaN()
            continue
          }
          const rotated = rotation.rotate(one, 0, size)
          const bySigns = rotated.reduce(
            (sum, value, place) => sum + (value > 0 ? 1 : -1) * (asked[place] ?? 0),
            0
          )
          const length = rotated.reduce((sum, value) => sum + Math.abs(value), 0)
          expect(Math.abs((cosine[slot] ?? 0) - (length === 0 ? 0 : bySigns / length))).toBeLessThan(0.02)
          expect(Math.abs((cosine[slot] ?? 0) - dot(one, query))).toBeLessThanOrEqual(slack)
        }
      })
    )
  })

  it("bounds a cosine without its floats, and narrowly", () => {
    FastCheck.assert(
      FastCheck.property(optional, vector, (all, query) => {
        const vectors = filled(all)
        const slots = Int32Array.from(all.keys()).reverse()
        const { cosine, margin } = vectors.bounds(vectors.quantizeQuery(query), slots)
        for (const [place, slot] of slots.entries()) {
          const one = all[slot] ?? null
          if (one === null) expect(cosine[place]).toBeNaN()
          else {
            expect(Math.abs(dot(one, query) - (cosine[place] ?? 0))).toBeLessThanOrEqual(margin[place] ?? 0)
            expect(margin[place]).toBeLessThan(0.03)
          }
        }
      })
    )
  })

  it("keeps apart what several collections hold, across the pages of their memory", () => {
    const wide = 1_536
    const make = (seed: number) =>
      roundVector(unit(Array.from({ length: wide }, (_, place) => Math.sin(seed * 12.9898 + place * 78.233))))
    const several = Array.from({ length: 3 }, () => new Vectors(wide))
    const count = 400
    for (let slot = 0; slot < count; slot++) {
      for (const [place, vectors] of several.entries()) vectors.set(slot, bytes(make(slot + place * 10_000)))
    }
    const query = make(5.5)
    // Every third goes; those that stay move into the pages of others that went.
    let next = 0
    const moved = Int32Array.from({ length: count }, (_, slot) => (slot % 3 === 0 ? -1 : next++))
    for (const vectors of several.slice(1, 2)) Array.from(vectors.retain(moved))
    for (let slot = 0; slot < 60; slot++) several[0]?.set(count + slot, bytes(make(slot - 500)))
    for (const [place, vectors] of several.entries()) {
      const total = place === 1 ? next : place === 0 ? count + 60 : count
      const { cosine, margin } = vectors.bounds(
        vectors.quantizeQuery(query),
        Int32Array.from({ length: total }).map((_, slot) => slot)
      )
      const estimates = vectors.estimates(query, total)
      for (let slot = 0; slot < total; slot++) {
        const exact = vectors.cosine(slot, query)
        const seed =
          place === 1
            ? moved.indexOf(slot) + 10_000
            : slot < count
              ? slot + place * 10_000
              : slot - count - 500
        expect(exact).toBeCloseTo(dot(make(seed), query), 5)
        expect(Math.abs(exact - (cosine[slot] ?? 0))).toBeLessThanOrEqual(margin[slot] ?? 0)
        expect(Math.abs(exact - (estimates.cosine[slot] ?? 0))).toBeLessThanOrEqual(estimates.slack)
        expect(estimates.slack).toBeLessThan(0.13)
      }
    }
  })

  it("drops and renumbers slots as if they had been filled so from the start", () => {
    FastCheck.assert(
      FastCheck.property(
        optional,
        vector,
        FastCheck.infiniteStream(FastCheck.boolean()),
        (all, query, coin) => {
          const keeps = all.map(() => coin.next().value === true)
          let next = 0
          const vectors = filled(all)
          Array.from(vectors.retain(Int32Array.from(keeps, (keep) => (keep ? next++ : -1))))
          const expected = filled(all.filter((_, slot) => keeps[slot]))
          expect(vectors.count).toBe(expected.count)
          const { cosine } = vectors.estimates(query, all.length)
          expect(cosine).toEqual(expected.estimates(query, all.length).cosine)
          for (let slot = 0; slot < all.length; slot++) expect(vectors.has(slot)).toBe(expected.has(slot))
        }
      )
    )
  })

  it("passes over a vector of another model's length", () => {
    const vectors = new Vectors(size)
    vectors.set(0, new Uint8Array(size * 4 + 4))
    expect(vectors.count).toBe(0)
  })
})
