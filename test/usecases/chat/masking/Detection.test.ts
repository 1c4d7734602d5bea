/** Which values of texts are found, and how much work it takes. */
import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { MaskingInput } from "../../../../src/domain/agents/Masking.ts"
import { Masking } from "../../../../src/usecases/chat/masking/Masking.ts"
import { examples } from "./MaskingExamples.ts"

const settings = Schema.decodeUnknownSync(MaskingInput)
const masking = (given: Readonly<Record<string, unknown>> = {}) => new Masking(settings(given))
const everything = { patterns: [{ name: "customer", pattern: "KD-\\d{6,8}" }] }

interface Counts {
  right: number
  found: number
  expected: number
}

const labels = /\{(email|phone|card)\|([^}]*)\}/g

describe("The detection of personal data", () => {
  it("has the precision and the recall in docs/privacy.md, for our examples", () => {
    const counts = new Map<string, Counts>()
    const misses: Array<string> = []
    for (const example of examples) {
      const plain = example.replaceAll(labels, "$2")
      const masked = masking()
      const sent = masked.mask(plain)
      const wanted = [...example.matchAll(labels)].map(([, kind, value]) => `${kind} ${value}`)
      const got = [...sent.matchAll(/\[(email|phone|card)-\d+\]/g)].map(
        ([placeholder, kind]) => `${kind} ${masked.restore(placeholder)}`
      )
      if (wanted.join() !== got.join()) misses.push(`${plain} → ${sent}`)
      for (const kind of ["email", "phone", "card"]) {
        const of = (values: ReadonlyArray<string>) => values.filter((value) => value.startsWith(kind))
        const count = counts.get(kind) ?? { right: 0, found: 0, expected: 0 }
        count.right += of(got).filter((value) => wanted.includes(value)).length
        count.found += of(got).length
        count.expected += of(wanted).length
        counts.set(kind, count)
      }
    }
    expect([examples.length, misses]).toEqual([209, []])
    expect(Object.fromEntries(counts)).toEqual({
      email: { right: 22, found: 22, expected: 22 },
      phone: { right: 116, found: 116, expected: 116 },
      card: { right: 21, found: 21, expected: 21 }
    })
  })

  const digit = (from: number) => FastCheck.integer({ min: from, max: 9 })
  const digits = (length: number) => FastCheck.array(digit(0), { minLength: length, maxLength: length })
  const written = (separators: ReadonlyArray<string>, parts: FastCheck.Arbitrary<ReadonlyArray<string>>) =>
    FastCheck.tuple(parts, FastCheck.constantFrom(...separators)).map(([given, separator]) =>
      given.join(separator)
    )
  /** Phone numbers as they are written in several countries. No group begins like a card number. */
  const phone = FastCheck.oneof(
    written(
      [" ", "-", "/"],
      FastCheck.tuple(
        FastCheck.constantFrom("030", "0171", "0351", "089", "+49 171", "0033 6"),
        digit(7),
        digits(6)
      ).map(([area, first, own]) => [area, [first, ...own].join("")])
    ),
    written(
      [" ", ".", "-"],
      FastCheck.tuple(digit(1), digits(8)).map(([area, own]) => [
        `0${area}`,
        ...[0, 2, 4, 6].map((at) => own.slice(at, at + 2).join(""))
      ])
    ),
    written(
      [".", "-"],
      FastCheck.tuple(digit(7), digit(7), digit(7), digits(7)).map(([area, exchange, line, own]) => [
        [area, ...own.slice(0, 2)].join(""),
        [exchange, ...own.slice(2, 4)].join(""),
        [line, ...own.slice(4)].join("")
      ])
    )
  )
  const card = written(
    [" ", "-", ""],
    FastCheck.tuple(FastCheck.constantFrom("4", "51", "55"), digits(14)).map(([network, own]) => {
      const first = `${network}${own.join("")}`.slice(0, 15)
      const sum = [...first].reduce((total, each, place) => {
        const doubled = Number(each) * (place % 2 === 0 ? 2 : 1)
        return total + (doubled > 9 ? doubled - 9 : doubled)
      }, 0)
      const whole = `${first}${(10 - (sum % 10)) % 10}`
      return [0, 4, 8, 12].map((at) => whole.slice(at, at + 4))
    })
  )
  const email = FastCheck.constantFrom("bob@example.com", "anna.b+1@mail.example.de", "o'neil@büro.example")
  const glue = FastCheck.constantFrom(
    " ",
    ".",
    "-",
    "/",
    "\n1. ",
    " (",
    ") ",
    " - ",
    ", ",
    "\n",
    "...",
    ": ",
    " 5 "
  )
  const word = FastCheck.constantFrom("danke", "Filiale", "Tel", "call", "und")

  const zero = FastCheck.constantFrom(0xff10, 0x0660, 0x06f0, 0x0966, 0x0e50)
  const before = FastCheck.constantFrom("", "番号は", "電話", "번호 ", "رقم ", "тел. ")

  it.prop(
    "has the numbers of every script, and the same placeholder for the same number in ASCII",
    [before, FastCheck.oneof(phone, card), zero],
    ([words, ascii, first]) => {
      const other = ascii.replaceAll(/\d/g, (each) => String.fromCharCode(first + Number(each)))
      const masked = masking()
      const sent = masked.mask(`${words}${other}です`)
      expect(sent).toMatch(/^[^\d]*\[(?:phone|card)-1\]です$/u)
      expect(masked.restore(sent)).toBe(`${words}${other}です`)
      expect(masked.maskKnown(ascii)).not.toMatch(/\d{4}/u)
    }
  )

  it.prop(
    "finds every part of every value, with any surrounding text",
    [
      FastCheck.array(FastCheck.tuple(glue, FastCheck.oneof(phone, card, email, word)), {
        minLength: 1,
        maxLength: 5
      })
    ],
    ([parts]) => {
      // A number that a word is glued to is rather an identifier.
      const isWord = (value = "Hallo") => !/[\d@]/.test(value)
      const said = parts.reduce((all, [between, value], place) => {
        const isGlued = isWord(parts[place - 1]?.[1]) && /^[-./]$/.test(between)
        return all + (isGlued ? ", " : between) + value
      }, "Hallo")
      const values = parts.flatMap(([, value]) => (isWord(value) ? [] : [value]))
      const masked = masking()
      const sent = masked.mask(said)
      for (const value of values) expect([said, sent, sent.includes(value)]).toEqual([said, sent, false])
      // No group of a number stays either. Short digits are glue.
      const left = sent.replaceAll(/\[(?:email|phone|card)-\d+\]/g, "").match(/\d{3,}|@/g)
      expect([said, sent, left]).toEqual([said, sent, null])
      expect(masked.restore(sent)).toBe(said)
    },
    // About one text in 100,000 leaves digits: a part of two numbers together passes the checksum of cards by chance.
    { fastCheck: { numRuns: 3_000, seed: 1 } }
  )

  it("takes time linear in the text, also for hostile texts", () => {
    const hostile = [
      "@",
      "a@",
      "%40",
      "1",
      "1 ",
      "0-",
      "+1(",
      "(",
      "[",
      "[email-",
      "1.1.",
      "a.",
      "[email-1] ",
      "+",
      "KD-1"
    ]
    for (const unit of hostile) {
      const made = (length: number) => unit.repeat(Math.ceil(length / unit.length))
      const characters = counting(() => masking(everything).mask(made(4_000)))
      const more = counting(() => masking(everything).mask(made(16_000)))
      expect({ unit, isLinear: more / Math.max(1, characters) < 5 }).toEqual({ unit, isLinear: true })
    }
  })
})

describe("Learning from a long text", () => {
  it("lets its caller pause after a bounded amount of work", () => {
    for (const unit of ["1 ", "12.", "0171 2345678, ", "a1", "tel 123456 "]) {
      const said = unit.repeat(Math.ceil(200_000 / unit.length))
      const masked = masking()
      const steps = masked.learnInSteps(said)
      let most = 0
      let count = 0
      for (let isDone = false; !isDone; count++)
        most = Math.max(
          most,
          counting(() => (isDone = steps.next().done === true))
        )
      expect({ unit, pauses: count > 4, isBounded: most < 600_000 }).toEqual({
        unit,
        pauses: true,
        isBounded: true
      })
    }
  })

  it("finds the same as reading it at once", () => {
    const said = `${"1 ".repeat(5_000)}Telefon 1234567, ${"0171 2345678, ".repeat(2_000)}`
    for (const read of [
      (masked: Masking) => masked.learn(said),
      (masked: Masking) => [...masked.learnInSteps(said)],
      (masked: Masking) => [...masked.learnJsonInSteps({ said: [said] })]
    ]) {
      const masked = masking()
      read(masked)
      expect(masked.mask("I wrote 1234567 down")).toBe("I wrote [phone-1] down")
    }
  })

  it("reads no character of an address repeatedly", () => {
    const said = "%40".repeat(10_000)
    expect(counting(() => masking().mask(said))).toBeLessThan(20 * said.length)
  })
})

/** How often texts are looked into, by the functions that look. */
const counting = (work: () => void): number => {
  const { prototype } = String
  const { charAt, charCodeAt, slice } = prototype
  let steps = 0
  prototype.charAt = function (place) {
    steps++
    return charAt.call(this, place)
  }
  prototype.charCodeAt = function (place) {
    steps++
    return charCodeAt.call(this, place)
  }
  prototype.slice = function (from, to) {
    const cut = slice.call(this, from, to)
    steps += 1 + cut.length
    return cut
  }
  try {
    work()
  } finally {
    Object.assign(prototype, { charAt, charCodeAt, slice })
  }
  return steps
}
