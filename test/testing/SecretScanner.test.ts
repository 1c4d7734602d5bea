import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { formsOf, make, search } from "../../src/testing/SecretScanner.ts"

describe("A canary", () => {
  it("is another one at every call", () => {
    expect(make("key")).toMatch(/^canary-key-[0-9a-f-]{36}$/u)
    expect(make("key")).not.toBe(make("key"))
  })

  const secret = FastCheck.string({ minLength: 8, maxLength: 60, unit: "grapheme" }).map((text) =>
    text.toWellFormed()
  )
  const text = FastCheck.string({ maxLength: 20 })

  it.prop(
    "is found however it is written, and wherever it begins",
    [secret, text, text],
    ([secret, before, after]) => {
      const bytes = Buffer.from(`${before}${secret}${after}`)
      const written = {
        plain: `${before}${secret}${after}`,
        json: JSON.stringify({ [before]: `${after}${secret}` }),
        address: `https://x.test/?${encodeURIComponent(`${before}${secret}${after}`)}`,
        hex: bytes.toString("hex"),
        HEX: bytes.toString("hex").toUpperCase(),
        base64: bytes.toString("base64"),
        base64url: bytes.toString("base64url")
      }
      for (const [place, text] of Object.entries(written))
        expect(search({ key: secret }, [[place, text]])[0]).toMatchObject({ secret: "key", place })
    }
  )

  it("is not repeated by what tells of it, and nothing is found where it is not", () => {
    const secret = make("key")
    const [leak] = search({ key: secret, other: make("other") }, [
      ["log", `authorization: ${secret}; path: /`]
    ])
    expect(leak).toEqual({ secret: "key", place: "log", around: "authorization: [key]; path: /" })
    expect(search({ key: secret }, [["log", formsOf(make("key")).join()]])).toEqual([])
    expect(() => search({ key: "short" }, [])).toThrow("key is too short")
  })
})
