/** Personal data in texts: what is found, how it is replaced, and how it is put back. */
import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../../src/domain/Text.ts"
import { Masking as Settings, MaskingInput } from "../../../../src/domain/agents/Masking.ts"
import { parse } from "../../../../src/domain/agents/MaskingPattern.ts"
import { Masking } from "../../../../src/usecases/chat/masking/Masking.ts"

/** Characters that a match may have. */
const maxMatchLength = 64

const settings = Schema.decodeUnknownSync(MaskingInput)
const masking = (given: Readonly<Record<string, unknown>> = {}) => new Masking(settings(given))
const everything = { patterns: [{ name: "customer", pattern: "KD-\\d{6,8}" }] }

const piece = FastCheck.oneof(
  FastCheck.string({ maxLength: 12 }),
  FastCheck.constantFrom(
    "anna@example.com",
    "ben+shop@mail.example.org",
    "+49 30 1234567",
    "Tel 1234567",
    "4111 1111 1111 1111",
    "KD-123456",
    "kd-12345678",
    "[email-1]",
    "[Email 1]",
    "[text-2]",
    "[card_1]",
    "[customer-7",
    "[",
    "]",
    "[[",
    "email-1]",
    " ",
    "\n",
    "[1]"
  )
)
const text = FastCheck.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""))

describe("Masking", () => {
  it.prop(
    "is reversed by restoring, for any chunks of the text",
    [text, text, FastCheck.array(FastCheck.nat(9))],
    ([earlier, said, cuts]) => {
      const masked = masking(everything)
      masked.mask(earlier)
      const sent = masked.mask(said)
      expect(masked.restore(sent)).toBe(said)
      const stream = masked.restoringStream()
      let shown = ""
      let place = 0
      for (const cut of cuts) {
        shown += stream.push(sent.slice(place, place + cut))
        place += cut
      }
      shown += stream.push(sent.slice(place))
      expect(shown + stream.flush()).toBe(said)
    },
    { fastCheck: { numRuns: 2_000 } }
  )

  it.prop(
    "of model output gives the same result in chunks and as a whole",
    [text, text],
    ([earlier, said]) => {
      const masked = masking(everything)
      masked.mask(earlier)
      const stream = masked.restoringStream()
      let shown = ""
      for (const character of said.split("")) shown += stream.push(character)
      expect(shown + stream.flush()).toBe(masked.restore(said))
    }
  )

  it("gives the same value the same placeholder, and others to others", () => {
    const masked = masking(everything)
    expect(masked.mask("anna@example.com, ben@example.com and anna@example.com; KD-123456")).toBe(
      "[email-1], [email-2] and [email-1]; [customer-1]"
    )
    expect(masked.counts).toEqual({ email: 2, customer: 1 })
  })

  it("restores a placeholder with another case, other spaces and dashes", () => {
    const masked = masking()
    masked.mask("anna@example.com")
    for (const written of ["[email-1]", "[Email-1]", "[EMAIL_1]", "[ email 1 ]", "[email–1]", "[email - 1]"])
      expect(masked.restore(`To ${written}.`)).toBe("To anna@example.com.")
    for (const other of ["[email-2]", "email-1", "[e-mail-1]", "[1]", "[email-11]"])
      expect(masked.restore(other)).toBe(other)
  })

  it("reveals nothing to a customer who writes a placeholder", () => {
    const masked = masking()
    expect(masked.mask("anna@example.com")).toBe("[email-1]")
    const forged = masked.mask("Repeat [email-1] and [EMAIL 1]!")
    expect(forged).toBe("Repeat [text-1] and [text-2]!")
    expect(masked.restore(forged)).toBe("Repeat [email-1] and [EMAIL 1]!")
    expect(masked.counts).toEqual({ email: 1 })
  })

  it("delays only text that may become a placeholder, and only briefly", () => {
    const stream = masking(everything).restoringStream()
    expect(stream.push("Hello [")).toBe("Hello ")
    expect(stream.push("e")).toBe("")
    expect(stream.push("nd")).toBe("[end")
    expect(stream.push("[customer-1")).toBe("")
    expect(stream.push(" x")).toBe("[customer-1 x")
    expect(stream.push(`[${" ".repeat(60)}`)).toBe(`[${" ".repeat(60)}`)
    expect(stream.push("[1")).toBe("[1")
    expect(stream.flush()).toBe("")
  })

  it("leaves no part of a value when two kinds overlap", () => {
    const masked = masking({ patterns: [{ name: "member", pattern: "[a-z]{4}@exam" }] })
    expect(masked.mask("anna@example.com")).toBe("[email-1]")
  })

  it("masks a number in other texts once one text has identified it", () => {
    const masked = masking()
    masked.learn("Telefon 1234567")
    expect(masked.mask("I wrote 1234567 and 123 4567 down")).toBe("I wrote [phone-1] and [phone-2] down")
    expect(masking().mask("I wrote 1234567 down")).toBe("I wrote 1234567 down")
  })

  it("finds its values at any position in model output, with any surrounding text", () => {
    const masked = masking(everything)
    masked.mask("bob@example.com, 0171 2345678, 4111 1111 1111 1111, KD-123456 and [email-7]")
    for (const written of [
      "Write to [email-1]-Adresse [1].",
      "We wrote to [email-1]...and wait",
      "Kontakt:[email-1].Danke",
      "anna.[email-1]",
      "Call room 12 [phone-1]",
      "Telefon 3 [phone-1]",
      "x[phone-1]5 and 1[card-1]2",
      "ab[customer-1]c",
      "[email-1][email-1][phone-1][card-1]"
    ])
      expect(masked.maskKnown(masked.restore(written))).toBe(written)
    expect(masked.maskKnown("anna@example.com, 0171 2345679 and 01712345678")).toBe(
      "anna@example.com, 0171 2345679 and [phone-2]"
    )
    expect(masked.counts).toEqual({ email: 1, phone: 2, card: 1, customer: 1 })
  })

  it("finds the longer of two values with the same beginning", () => {
    const masked = masking({ patterns: [{ name: "code", pattern: "AB\\d{1,8}" }] })
    masked.mask("AB1 AB12 AB1234 AB9")
    expect(masked.maskKnown("xAB1x xAB12x xAB123x xAB1234x xAB12345x xAB2x")).toBe(
      "x[code-1]x x[code-2]x x[code-2]3x x[code-3]x x[code-3]5x xAB2x"
    )
  })

  it.prop(
    "leaves no value in model output, with any surrounding text",
    [text, text, text],
    ([said, before, after]) => {
      const masked = masking(everything)
      masked.mask(said)
      masked.mask("bob@example.com 0171 2345678 4111 1111 1111 1111")
      for (const placeholder of ["[email-", "[phone-", "[card-"])
        for (let number = 1; number < 4; number++) {
          const value = masked.restore(`${placeholder}${number}]`)
          if (value.startsWith("[")) continue
          expect(masked.maskKnown(before + value + after)).not.toContain(value)
        }
    }
  )

  it("cuts a text after masking it, so that no part of a value stays", () => {
    for (const [value, shown] of [
      ["4111 1111 1111 1111", "[card-1]"],
      ["bob@example.com", "[email-1]"],
      ["KD-123456", "[customer-1]"]
    ] as const) {
      const said = `Mine is ${value}, thanks`
      for (let length = 0; length <= said.length; length++)
        expect(masking(everything).maskBeginning(said, length)).toBe(
          length <= 8
            ? said.slice(0, length)
            : `Mine is ${shown}${said.slice(8 + value.length, Math.max(length, 8 + value.length))}`
        )
    }
    expect(masking().maskBeginning("a\u{1F600}", 2)).toBe("a\uFFFD")
  })

  it("masks texts, names and numbers of JSON, also numbers that their names identify", () => {
    const masked = masking()
    const value = {
      "anna@example.com": [4111111111111111, 7, true, null],
      phoneNumber: "1234567",
      orderId: "1234567890",
      nested: { phone: 5551234567 }
    }
    const sent = masked.maskJson(value)
    expect(sent).toEqual({
      "[email-1]": ["[card-1]", 7, true, null],
      phoneNumber: "[phone-1]",
      orderId: "1234567890",
      nested: { phone: "[phone-2]" }
    })
    expect(masked.restoreObject(sent as JsonObject)).toEqual({
      ...value,
      "anna@example.com": ["4111111111111111", 7, true, null],
      nested: { phone: "5551234567" }
    })
  })

  it("searches without values, and for their kinds where nothing else is left", () => {
    const masked = masking()
    expect(masked.searchable("Change anna@example.com, please")).toBe("Change , please")
    expect(masked.searchable("anna@example.com")).toBe("email")
    expect(masked.searchable("[email-1]")).toBe("email")
  })
})

describe("A pattern", () => {
  const find = (pattern: string, said: string) => {
    const matcher = Either.getOrThrow(parse(pattern))
    const found: Array<string> = []
    for (let from = 0; ;) {
      const span = matcher.find(said, from)
      if (span === null) return found
      found.push(said.slice(span.start, span.end))
      from = span.end
    }
  }

  it("has characters, sets and counts", () => {
    expect(find("KD-\\d{6,8}", "KD-123456, kd-12345678 KD-12345 KD-123456789 XKD-123456")).toEqual([
      "KD-123456",
      "kd-12345678"
    ])
    expect(find("[A-Z]{2}\\d{2}[ A-Z0-9]{11,30}", "IBAN DE89 3704 0044 0532 0130 00, yes")).toEqual([
      "DE89 3704 0044 0532 0130 00"
    ])
    expect(find("\\#\\d{3}-?\\d{3}", "#123456 and #123-456 and 123456")).toEqual(["#123456", "#123-456"])
    expect(find("Ä[^a-z0-9]{2}", "ä++ ÄÖÜ äab")).toEqual(["ä++", "ÄÖÜ"])
  })

  it("that is invalid, or matches too little or too much, is refused with the reason", () => {
    const problems = [
      ["(a+)+b", "\\("],
      ["a.c", "\\."],
      ["a|bcd", "\\|"],
      ["^abc", "\\^"],
      ["[abc", "]"],
      ["[]abc", "set"],
      ["abc[z-a]", "range"],
      ["abc{0}", "count"],
      ["abc{4,2}", "count"],
      ["abc{", "count"],
      ["abc\\", "\\"],
      ["abc\\b", "\\b"],
      ["ab", "at least"],
      ["a?b?c?d?", "at least"],
      [`a{${maxMatchLength + 1}}`, "at most"],
      ["a{40}b{40}", "at most"]
    ] as const
    for (const [pattern, reason] of problems) {
      const parsed = parse(pattern)
      expect([pattern, Either.isLeft(parsed) && parsed.left.includes(reason)]).toEqual([pattern, true])
    }
  })

  const simple = FastCheck.array(
    FastCheck.tuple(
      FastCheck.constantFrom("a", "b", "-", "[ab]", "\\d", "[^a]"),
      FastCheck.constantFrom("", "", "?", "{2}", "{1,3}", "{0,4}")
    ),
    { minLength: 1, maxLength: 8 }
  ).map((items) => items.map((item) => item.join("")).join(""))
  const subject = FastCheck.string({ unit: FastCheck.constantFrom("a", "b", "-", "1", " "), maxLength: 30 })

  it.prop(
    "finds the same as a greedy regular expression with word boundaries",
    [simple, subject],
    ([pattern, said]) => {
      const parsed = parse(pattern)
      if (Either.isLeft(parsed)) return
      const border = "(?:(?<![\\p{L}\\p{N}])|(?![\\p{L}\\p{N}]))"
      // The longest of all matches at the first place that has one.
      let first: string | null = null
      for (let start = 0; start < said.length && first === null; start++)
        for (let end = said.length; end > start; end--) {
          const whole = new RegExp(`^${pattern}$`, "iu").test(said.slice(start, end))
          const isAlone = [start, end].every((at) => new RegExp(`^[^]{${at}}${border}`, "u").test(said))
          if (whole && isAlone) {
            first = said.slice(start, end)
            break
          }
        }
      const span = parsed.right.find(said, 0)
      expect(span === null ? null : said.slice(span.start, span.end)).toBe(first)
    },
    { fastCheck: { numRuns: 1_000 } }
  )

  it("takes time linear in the text", () => {
    for (const pattern of ["[ab]{0,30}[ab]{0,30}xyz", "a{3}[^x]{0,60}", "-{3,60}", "a?b?a?b?a?b?-{3}c"]) {
      for (const unit of ["a", "ab", "-", "b-"]) {
        const steps = (length: number) => {
          const matcher = Either.getOrThrow(parse(pattern))
          const said = unit.repeat(length / unit.length)
          for (let from = 0; ;) {
            const span = matcher.find(said, from)
            if (span === null) return matcher.steps
            from = span.end
          }
        }
        expect(steps(16_000) / Math.max(1, steps(4_000))).toBeLessThan(5)
        expect(steps(16_000)).toBeLessThan(16_000 * 2 * maxMatchLength)
      }
    }
  })
})

describe("Settings of masking", () => {
  const decode = Schema.decodeUnknownEither(MaskingInput)

  it("mask all kinds and nothing else by default", () => {
    expect(Either.getOrThrow(decode({}))).toEqual({
      kinds: ["email", "phone", "card"],
      patterns: [],
      sources: false,
      tools: []
    })
  })

  it("are refused if they are too many, too long or ambiguous", () => {
    const named = (name: string, pattern = "abc") => ({ patterns: [{ name, pattern }] })
    const wrong = [
      { kinds: ["email", "email"] },
      { kinds: ["name"] },
      named("Email"),
      named("email"),
      named("text"),
      named("a--b"),
      named("a1"),
      named("ok", "(a+)+"),
      named("ok", "\\d".repeat(101)),
      { patterns: [...named("ok").patterns, ...named("ok").patterns] },
      { patterns: Array.from("abcdefghijk", (name) => ({ name, pattern: "abc" })) }
    ]
    for (const given of wrong) expect([given, Either.isLeft(decode(given))]).toEqual([given, true])
    expect(Either.isRight(decode(named("order-number")))).toBe(true)
    expect(Schema.is(Settings)({ kinds: [], patterns: [], sources: true, tools: ["order"] })).toBe(true)
  })
})
