import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { TopRanked, fuse } from "../../src/search/Fusion.ts"

const share = FastCheck.double({ min: 0, max: 1, noNaN: true })

describe("Fusion", () => {
  it("adds words and meaning by weight: score = w · lexical + (1 − w) · semantic", () => {
    expect(fuse(0.7, 0.5, 0.4)).toEqual({ score: 0.7 * 0.5 + (1 - 0.7) * 0.4, lexical: 0.5, semantic: 0.4 })
  })

  it("falls back to the lexical part when no embedding is at hand", () => {
    expect(fuse(0.7, 0.5, undefined)).toEqual({ score: 0.5, lexical: 0.5, semantic: 0 })
  })

  it("keeps every score and part between 0 and 1", () => {
    FastCheck.assert(
      FastCheck.property(
        share,
        FastCheck.double({ noNaN: true }),
        FastCheck.double({ noNaN: true }),
        (weight, lexical, cosine) => {
          for (const part of Object.values(fuse(weight, lexical, cosine)))
            expect(part >= 0 && part <= 1).toBe(true)
        }
      )
    )
  })

  it("keeps the best by score, ties by id, and nothing below minScore or at 0", () => {
    const offer = FastCheck.record({
      id: FastCheck.string(),
      score: FastCheck.constantFrom(0, 0.1, 0.2, 0.3, 0.4)
    })
    const offers = FastCheck.uniqueArray(offer, { selector: ({ id }) => id, maxLength: 40 })
    FastCheck.assert(
      FastCheck.property(
        offers,
        FastCheck.integer({ min: 1, max: 8 }),
        FastCheck.constantFrom(0, 0.2),
        (all, size, minScore) => {
          const best = new TopRanked(size, minScore)
          for (const { id, score } of all) best.offer(id, { score, lexical: score, semantic: 0 })
          const expected = all
            .filter(({ score }) => score > 0 && score >= minScore)
            .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
            .slice(0, size)
          expect(best.all.map(({ id, score }) => ({ id, score }))).toEqual(expected)
        }
      )
    )
  })
})
