import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { CodePages, groupSize } from "../../../src/search/vectors/CodePages.ts"

const bytes = (length: number) => FastCheck.uint8Array({ minLength: length, maxLength: length })
/** Code lengths within a block of 64 bytes, at its end and beyond it, and those that fill a page alone. */
const length = FastCheck.constantFrom(1, 8, 63, 64, 65, 192, 1_536, 8_192)
const slots = FastCheck.integer({ min: 1, max: 20 })

describe("The loops in WebAssembly", () => {
  it("add up what the halves of each byte find in their tables", () => {
    const given = FastCheck.tuple(FastCheck.integer({ min: 1, max: 256 }), slots).chain(([pairs, groups]) =>
      FastCheck.record({
        pairs: FastCheck.constant(pairs),
        groups: FastCheck.array(bytes(pairs * groupSize), { minLength: groups, maxLength: groups }),
        tables: bytes(pairs * 32).map((entries) => entries.map((entry) => entry % 128))
      })
    )
    FastCheck.assert(
      FastCheck.property(given, ({ groups, pairs, tables }) => {
        const codes = new CodePages(pairs * groupSize)
        codes.grow(groups.length)
        for (const [slot, group] of groups.entries()) codes.slot(slot).set(group)
        const sums = codes.lookupSums(tables, groups.length)
        const expected = groups.flatMap((group) =>
          Array.from({ length: groupSize }, (_, code) => {
            let sum = 0
            for (let pair = 0; pair < pairs; pair++) {
              const byte = group[pair * groupSize + code] ?? 0
              sum += (tables[pair * 32 + (byte & 15)] ?? 0) + (tables[pair * 32 + 16 + (byte >> 4)] ?? 0)
            }
            return sum
          })
        )
        expect([...sums]).toEqual(expected)
      })
    )
  })

  it("multiply a query with the signed bytes of any slots, in any order", () => {
    const given = FastCheck.tuple(length, slots).chain(([size, count]) =>
      FastCheck.record({
        codes: FastCheck.array(bytes(size), { minLength: count, maxLength: count }),
        query: FastCheck.int16Array({ minLength: size, maxLength: size }).map((numbers) =>
          numbers.map((number) => number % 2_048)
        ),
        asked: FastCheck.array(FastCheck.integer({ min: 0, max: count - 1 }), { minLength: 1, maxLength: 30 })
      })
    )
    FastCheck.assert(
      FastCheck.property(given, ({ asked, codes, query }) => {
        const pages = new CodePages(query.length)
        pages.grow(codes.length)
        for (const [slot, code] of codes.entries()) pages.slot(slot).set(code)
        const expected = asked.map((slot) =>
          Int8Array.from(codes[slot] ?? []).reduce((sum, byte, place) => sum + byte * (query[place] ?? 0), 0)
        )
        expect([...pages.dotProducts(query, Int32Array.from(asked))]).toEqual(expected)
      }),
      { numRuns: 50 }
    )
  })

  it("take more codes than one call does", () => {
    const pages = new CodePages(64)
    pages.grow(10_000)
    for (let slot = 0; slot < 10_000; slot++) pages.slot(slot).fill(slot % 100, 0, 1)
    const products = pages.dotProducts(
      Int16Array.of(3),
      Int32Array.from({ length: 10_000 }).map((_, slot) => slot)
    )
    expect([...products]).toEqual(Array.from({ length: 10_000 }, (_, slot) => (slot % 100) * 3))
  })
})
