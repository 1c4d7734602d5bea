import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { validationProblems } from "../../../src/usecases/chat/tools/Arguments.ts"
import { Scrubber } from "../../../src/usecases/chat/tools/Scrub.ts"

const value = FastCheck.string({ minLength: 6, maxLength: 40, unit: "grapheme-ascii" })

describe("Scrubbing", () => {
  it.prop(
    "finds a value in every common encoding, at any position",
    [value, FastCheck.string()],
    ([secret, around]) => {
      const scrubber = new Scrubber([secret])
      const text = `${around} ${secret} ${around}`
      const encoded = [
        text,
        encodeURIComponent(text.toWellFormed()),
        JSON.stringify(text),
        Buffer.from(text).toString("hex")
      ]
      const own = [
        secret,
        encodeURIComponent(secret),
        JSON.stringify(secret).slice(1, -1),
        Buffer.from(secret).toString("hex")
      ]
      encoded.forEach((form, place) => {
        if ("[redacted]".includes(own[place]!)) return
        expect(scrubber.text(form)).not.toContain(own[place])
      })
    }
  )

  it.prop(
    "of text in chunks gives the same result as of the whole text, for any chunks",
    [value, FastCheck.array(FastCheck.nat(12)), FastCheck.string()],
    ([secret, cuts, noise]) => {
      const scrubber = new Scrubber([secret, secret.slice(0, 4), "42"])
      const text = `a ${secret}${noise} 42 ${secret.slice(0, -1)} ${secret.slice(0, 4)} 421 ${secret}`
      const stream = scrubber.streaming()
      let shown = ""
      let place = 0
      for (const cut of cuts) {
        shown += stream.push(text.slice(place, place + cut))
        place += cut
      }
      shown += stream.push(text.slice(place))
      shown += stream.flush()
      expect(shown).toBe(scrubber.text(text))
    }
  )

  it("does not delay text that cannot become a value", () => {
    const stream = new Scrubber(["secret-value"]).streaming()
    expect(stream.push("Hello ")).toBe("Hello ")
    expect(stream.push("se")).toBe("")
    expect(stream.push("cond")).toBe("second")
    expect(stream.push(" secret-val")).toBe(" ")
    expect(stream.push("ue!")).toBe("[redacted]!")
    expect(stream.flush()).toBe("")
  })

  it("does not change words that contain a short value", () => {
    const scrubber = new Scrubber(["42"])
    expect(scrubber.json({ a: "42 of 421", b: 42, c: 421 })).toEqual({
      a: "[redacted] of 421",
      b: "[redacted]",
      c: 421
    })
  })

  it("does not change citation marks and numbers in schemas", () => {
    const scrubber = new Scrubber(["1", "pro"])
    expect(scrubber.text("It takes 14 days [1]. It is store 1 [12][1]")).toBe(
      "It takes 14 days [1]. It is store [redacted] [12][1]"
    )
    expect(scrubber.text("[pro] [1, 2]")).toBe("[[redacted]] [[redacted], 2]")
    const schema = { type: "array", minItems: 1, items: { enum: ["free", "pro"], maxLength: 1 } }
    expect(scrubber.schema(schema)).toEqual({
      ...schema,
      items: { enum: ["free", "[redacted]"], maxLength: 1 }
    })
  })

  it("finds a value inside of base64, at any offset", () => {
    const secret = "canary-5f0e1d2c3b4a"
    for (const before of ["", "a", "ab", "user:"]) {
      const encoded = Buffer.from(`${before}${secret} and more`).toString("base64")
      const cleaned = new Scrubber([secret]).text(encoded)
      expect(Buffer.from(cleaned, "base64").toString()).not.toContain(secret.slice(3, -3))
      expect(cleaned).toContain("[redacted]")
    }
  })
})

describe("A model's arguments", () => {
  const schema = {
    type: "object",
    properties: {
      id: { type: "string", minLength: 2, pattern: "^(a+)+$" },
      n: { type: "integer", minimum: 1, maximum: 9 },
      tags: { type: "array", items: { enum: ["x", "y"] }, maxItems: 2 },
      one: { anyOf: [{ type: "string" }, { type: "null" }] }
    },
    required: ["id"],
    additionalProperties: false
  }
  it("are checked against the tool's JSON Schema", () => {
    expect(validationProblems(schema, { id: "ab", n: 3, tags: ["x"], one: null })).toEqual([])
    expect(validationProblems(schema, {})).toEqual(["/id is missing"])
    expect(validationProblems(schema, { id: 7, n: 10, tags: ["z"], one: 1, more: 1 })).toEqual([
      "/id must be of type string",
      "/n is out of range",
      '/tags/0 must be one of ["x","y"]',
      "/one fits none of its alternatives",
      "/more is not expected"
    ])
  })
})
