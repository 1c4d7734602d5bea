import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import * as Json from "../../src/domain/Json.ts"

const nested = (levels: number) => `${"[".repeat(levels)}1${"]".repeat(levels)}`
const nestedObjects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
const reasonOf = (text: string) =>
  Either.match(Json.parse(text), { onLeft: ({ reason }) => reason, onRight: () => "read" })

describe("JSON from outside", () => {
  it("is refused when it is no JSON", () => {
    for (const text of ["", "{", "nul", '{"a":1}x', "NaN", "'a'", '"\u0000"']) {
      expect([text, reasonOf(text)]).toEqual([text, "malformed"])
    }
  })

  it("is refused when it is nested too deeply, however deeply", () => {
    for (const levels of [65, 6_000, 1_000_000]) {
      expect(reasonOf(nested(levels))).toBe("too-deep")
      expect(reasonOf(nestedObjects(levels))).toBe("too-deep")
    }
    expect(reasonOf(`${"[".repeat(70)}"\\u0000"${"]".repeat(70)}`)).toBe("too-deep")
    expect(reasonOf(nested(64))).toBe("read")
    expect(reasonOf(nestedObjects(64))).toBe("read")
    expect(Either.isRight(Json.parse(nested(100), 100))).toBe(true)
  })

  it("never holds what a store cannot, in texts and in names, at any depth", () => {
    const text = '{"a\\u0000":["\\ud83d\\ude00\\ud800",{"\\uDC00":"x\\u0000y"}],"\\u0000":null}'
    expect(Json.parse(text)).toEqual(Either.right({ a: ["😀\ufffd", { "\ufffd": "xy" }], "": null }))
    expect(Json.parse('"\\u0000"')).toEqual(Either.right(""))
    expect(Json.parse('"\ud800"')).toEqual(Either.right("\ufffd"))
  })

  it("is otherwise what it says", () => {
    expect(Json.parse('"\\\\u0000"')).toEqual(Either.right("\\u0000"))
    expect(Json.parse('{"__proto__":{"x":"\\u0000"}}')).toEqual(
      Either.right(JSON.parse('{"__proto__":{"x":""}}'))
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.json({ maxDepth: 8 }), (text) => {
        expect(Json.parse(text)).toEqual(Either.right(JSON.parse(text)))
      }),
      { seed: 13, numRuns: 300 }
    )
  })

  it("of a stream keeps the halves of characters that the next piece completes", () => {
    expect(Json.parsePiece('"\\ud83d"')).toEqual(Either.right("\ud83d"))
    expect(Either.isLeft(Json.parsePiece(nested(65)))).toBe(true)
  })
})
