import { expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { PatchAgent } from "../../src/domain/agents/Agent.ts"
import { QaConfig, TextConfig } from "../../src/domain/knowledge/CuratedSource.ts"
import { UrlConfig } from "../../src/domain/knowledge/Source.ts"
import { SourceMetadata } from "../../src/domain/knowledge/SourceMetadata.ts"
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

it("The limits of sources and agents are in characters, too", () => {
  const pairs = (answer: string) => Array.from({ length: 50 }, () => ({ question: "?", answer }))
  for (const [name, fits, max] of [
    ["text", (text: string) => Schema.is(TextConfig)({ text }), 200_000],
    ["metadata", (text: string) => Schema.is(SourceMetadata)({ team: text }), 500],
    [
      "patterns",
      (text: string) => Schema.is(UrlConfig)({ url: "https://a.example", includePatterns: [text] }),
      1_024
    ],
    ["answers", (text: string) => Schema.is(QaConfig)({ pairs: pairs(text) }), 3_999],
    ["instructions", (text: string) => Schema.is(PatchAgent)({ instructions: text }), 32_000],
    ["greeting", (text: string) => Schema.is(PatchAgent)({ greeting: text }), 2_000]
  ] as const) {
    expect([name, fits("😀".repeat(max)), fits("😀".repeat(max + 1))]).toEqual([name, true, false])
  }
})
