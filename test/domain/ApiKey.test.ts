import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { Email } from "../../src/domain/accounts/Account.ts"
import { AllowedOrigin } from "../../src/domain/accounts/ApiKey.ts"

const decode = Schema.decodeUnknownEither(AllowedOrigin)
const origins = FastCheck.webUrl({
  validSchemes: ["http", "https"],
  authoritySettings: { withPort: true }
}).map((url) => new URL(url).origin)

describe("An allowed origin", () => {
  it.prop(
    "is taken as browsers send it, also in capitals and with a slash at its end",
    [origins],
    ([origin]) => {
      for (const text of [origin, `${origin}/`, origin.toUpperCase(), ` ${origin} `]) {
        expect(decode(text)).toEqual(Either.right(origin))
      }
    }
  )

  it.prop(
    "is refused with anything that is no part of an origin",
    [
      origins,
      FastCheck.constantFrom(
        "/path",
        "/?query",
        "?",
        "#",
        "/#fragment",
        "\\",
        "@x",
        ",https://a.example",
        "*"
      )
    ],
    ([origin, rest]) => {
      expect(Either.isLeft(decode(origin + rest))).toBe(true)
    }
  )

  it.prop(
    "never becomes anything but an origin, whatever is sent",
    [FastCheck.string({ unit: "binary" })],
    ([text]) => {
      for (const sent of [text, `https://${text}`]) {
        const taken = decode(sent)
        if (Either.isRight(taken)) expect(new URL(taken.right).origin).toBe(taken.right)
      }
    }
  )

  it("loses the port that its scheme implies and keeps every other, names and addresses alike", () => {
    const taken = [
      "https://a.example:443",
      "http://a.example:80",
      "http://[::1]:3000",
      "https://b\u00fccher.example"
    ]
    expect(taken.map((text) => Either.getOrNull(decode(text)))).toEqual([
      "https://a.example",
      "http://a.example",
      "http://[::1]:3000",
      "https://xn--bcher-kva.example"
    ])
  })
})

describe("An e-mail address", () => {
  const email = Schema.decodeUnknownEither(Email)

  it.prop(
    "is the same in whatever case and with whatever space around it",
    [FastCheck.emailAddress()],
    ([text]) => {
      expect(email(` ${text.toUpperCase()}\n`)).toEqual(Either.right(text.toLowerCase()))
      const once = Either.getOrNull(email(text))
      expect(email(once)).toEqual(Either.right(once))
    }
  )

  it("may be one of this machine, and is refused without a name, a host or in one word", () => {
    expect(Either.isRight(email("admin@localhost"))).toBe(true)
    for (const text of ["", "@", "a@", "@b", "a b@c", "a@b@c", `${"a".repeat(320)}@b`]) {
      expect([text, Either.isLeft(email(text))]).toEqual([text, true])
    }
  })
})
