import { expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { asciiDigit, trimmed, withoutControls } from "../../src/domain/Text.ts"

it("Text for a terminal has no escape sequences, and the rest as it is", () => {
  expect(withoutControls("\u001b]0;owned\u0007Hats\tcost\n5 €\u009b31m\r")).toBe("]0;ownedHats\tcost\n5 €31m")
})

const anyText = FastCheck.array(FastCheck.integer({ min: 0, max: 0x2ff })).map((codes) =>
  String.fromCodePoint(...codes)
)

it.prop("Text for a terminal has no control characters but tabs and line feeds", [anyText], ([text]) => {
  const kept = [...text].filter((each) => each === "\t" || each === "\n" || !/\p{Cc}/u.test(each))
  expect(withoutControls(text)).toBe(kept.join(""))
})

it("The digits of every script are those of ASCII", () => {
  for (const zero of ["0", "٠", "۰", "०", "๐", "０", "𝟎"]) {
    const first = zero.codePointAt(0) ?? 0
    const digits = Array.from({ length: 10 }, (_, value) => asciiDigit(String.fromCodePoint(first + value)))
    expect(digits.join("")).toBe("0123456789")
  }
})

it("The length of a text is counted in characters, whether they take one or two units", () => {
  const isShort = Schema.is(trimmed(3))
  const read = Schema.decodeUnknownEither(trimmed(3))
  for (const [text, fits] of [
    ["abc", true],
    ["abcd", false],
    ["😀😀😀", true],
    ["😀a😀", true],
    ["😀😀😀😀", false],
    ["😀😀😀a", false]
  ] as const) {
    expect([text, isShort(text), read(` ${text}\n`)._tag]).toEqual([text, fits, fits ? "Right" : "Left"])
  }
})
