import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { type Purpose, SecretBox } from "../../src/capabilities/SecretBox.ts"
import { layer, type MasterSecrets } from "../../src/capabilities/SecretBox/DerivedKeys.ts"

const purposes: ReadonlyArray<Purpose> = ["cursor", "realtime", "tool-secret", "channel-token"]

const master = (name: string) => Redacted.make(`${name} master secret of thirty-two bytes`)
const first = master("first")
const second = master("second")

type Box = SecretBox["Type"]

/** A box of some master secrets whose methods answer at once. */
const box = (...masters: MasterSecrets) => {
  const effects: Box = Effect.runSync(SecretBox.pipe(Effect.provide(layer(masters))))
  return {
    sign: (purpose: Purpose, text: string) => Effect.runSync(effects.sign(purpose, text)),
    verify: (purpose: Purpose, signed: string) => Effect.runSync(effects.verify(purpose, signed)),
    seal: (purpose: Purpose, text: string) => Effect.runSync(effects.seal(purpose, text)),
    open: (purpose: Purpose, sealed: string) => Effect.runSync(effects.open(purpose, sealed))
  }
}

const some = Option.some<string>
const none = Option.none<string>()

const text = FastCheck.oneof(FastCheck.string(), FastCheck.fullUnicodeString(), FastCheck.json())
const purpose = FastCheck.constantFrom(...purposes)

/** Every text that differs from `original` in one character of the alphabet, at one place. */
const tampered = (original: string) =>
  FastCheck.tuple(
    FastCheck.nat({ max: original.length - 1 }),
    FastCheck.constantFrom(..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ")
  )
    .map(([at, char]) => `${original.slice(0, at)}${char}${original.slice(at + 1)}`)
    .filter((changed) => changed !== original)

/** Flips one bit of one base64url part. */
const flipBit = (part: string, bit: number): string => {
  const bytes = Buffer.from(part, "base64url")
  const at = Math.floor(bit / 8) % bytes.length
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit % 8))
  return bytes.toString("base64url")
}

const malformed = ["", ".", "..", "...", "a", "a.b", "v1", "v1..", "v1.x.y", "v2.a.b", "\u0000", "é.é", "=.="]

describe("signing", () => {
  it("gives back the text that was signed, URL-safe on its way", () => {
    const { sign, verify } = box(first)
    FastCheck.assert(
      FastCheck.property(purpose, text, (use, value) => {
        const signed = sign(use, value)
        expect(signed).toMatch(/^[\w-]*\.[\w-]{43}$/)
        expect(verify(use, signed)).toEqual(some(value))
      })
    )
  })

  it("refuses a signed text with any bit or character changed", () => {
    const { sign, verify } = box(first)
    FastCheck.assert(
      FastCheck.property(
        text.chain((value) => FastCheck.tuple(FastCheck.constant(sign("cursor", value)), FastCheck.nat())),
        ([signed, bit]) => {
          const [payload = "", tag = ""] = signed.split(".")
          expect(verify("cursor", `${payload}.${flipBit(tag, bit)}`)).toEqual(none)
          if (payload !== "") expect(verify("cursor", `${flipBit(payload, bit)}.${tag}`)).toEqual(none)
        }
      )
    )
    FastCheck.assert(
      FastCheck.property(
        text.chain((value) => tampered(sign("cursor", value))),
        (changed) => {
          expect(verify("cursor", changed)).toEqual(none)
        }
      ),
      { numRuns: 1_000 }
    )
  })

  it("refuses what was signed for another purpose or with another secret", () => {
    const signed = box(first).sign("cursor", "text")
    for (const other of purposes.filter((name) => name !== "cursor"))
      expect(box(first).verify(other, signed)).toEqual(none)
    expect(box(second).verify("cursor", signed)).toEqual(none)
  })

  it.each(malformed)("refuses %j", (signed) => {
    expect(box(first).verify("cursor", signed)).toEqual(none)
  })

  it("accepts the old secret's tags after a rotation, until it is dropped", () => {
    const signed = box(first).sign("realtime", "text")
    expect(box(second, first).verify("realtime", signed)).toEqual(some("text"))
    expect(box(second).verify("realtime", signed)).toEqual(none)
    const renewed = box(second, first).sign("realtime", "text")
    expect(box(second).verify("realtime", renewed)).toEqual(some("text"))
  })
})

describe("sealing", () => {
  it("gives back the text that was sealed", () => {
    const { open, seal } = box(first)
    FastCheck.assert(
      FastCheck.property(purpose, text, (use, value) => {
        const sealed = seal(use, value)
        expect(sealed).toMatch(/^v1\.[\w-]{8}\.[\w-]{38,}$/)
        expect(open(use, sealed)).toEqual(some(value))
      })
    )
  })

  it("never gives the same result twice, and hides the text", () => {
    const { seal } = box(first)
    const all = new Set(Array.from({ length: 200 }, () => seal("tool-secret", "canary-secret")))
    expect(all.size).toBe(200)
    for (const sealed of all) {
      const bytes = Buffer.from(sealed.split(".")[2] ?? "", "base64url")
      expect(bytes.toString("latin1")).not.toContain("canary")
    }
  })

  it("refuses a sealed text with any bit or character changed", () => {
    const { open, seal } = box(first)
    FastCheck.assert(
      FastCheck.property(
        text.chain((value) =>
          FastCheck.tuple(FastCheck.constant(seal("tool-secret", value)), FastCheck.nat())
        ),
        ([sealed, bit]) => {
          const [version, id = "", body = ""] = sealed.split(".")
          expect(open("tool-secret", `${version}.${id}.${flipBit(body, bit)}`)).toEqual(none)
          expect(open("tool-secret", `${version}.${flipBit(id, bit)}.${body}`)).toEqual(none)
        }
      )
    )
    FastCheck.assert(
      FastCheck.property(
        text.chain((value) => tampered(seal("tool-secret", value))),
        (changed) => {
          expect(open("tool-secret", changed)).toEqual(none)
        }
      ),
      { numRuns: 1_000 }
    )
  })

  it("refuses every shortened text", () => {
    const { open, seal } = box(first)
    const sealed = seal("channel-token", "text")
    for (let length = 0; length < sealed.length; length += 1)
      expect(open("channel-token", sealed.slice(0, length))).toEqual(none)
  })

  it("refuses what was sealed for another purpose, or merely signed", () => {
    const { open, seal, sign } = box(first)
    const sealed = seal("tool-secret", "text")
    for (const other of purposes.filter((name) => name !== "tool-secret"))
      expect(open(other, sealed)).toEqual(none)
    expect(open("tool-secret", sign("tool-secret", "text"))).toEqual(none)
  })

  it.each(malformed)("refuses %j", (sealed) => {
    expect(box(first).open("tool-secret", sealed)).toEqual(none)
  })

  it("names its key, so that a rotated secret opens the old and seals with the new", () => {
    const old = box(first).seal("tool-secret", "text")
    const rotated = box(second, first)
    expect(rotated.open("tool-secret", old)).toEqual(some("text"))
    const renewed = rotated.seal("tool-secret", "text")
    expect(renewed.split(".")[1]).not.toBe(old.split(".")[1])
    expect(box(second).open("tool-secret", renewed)).toEqual(some("text"))
    expect(box(first).open("tool-secret", renewed)).toEqual(none)
    expect(box(second).open("tool-secret", old)).toEqual(none)
  })

  it("keeps its form: what was sealed and signed before this version is still good", () => {
    const known = box(Redacted.make("a known master secret, 32 bytes and more"))
    expect(known.verify("cursor", "dGV4dA.JTUNPWVLRct8I4-qGdIKSxSpPc6nWkilvKwzA-RRKUI")).toEqual(some("text"))
    expect(known.open("tool-secret", "v1.cn2Qg2VD.BwcHBwcHBwcHBwcHNUs2ulyGpce7964RmdI5Pkhdk2Y")).toEqual(
      some("text")
    )
  })
})
