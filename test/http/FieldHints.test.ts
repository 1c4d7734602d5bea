import { describe, expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { it } from "vitest"
import { unknownField } from "../../src/domain/UnknownField.ts"
import * as PublicServer from "./PublicServer.ts"
import { TestServer } from "./TestServer.ts"

const warning = (method: string, path: string, body?: unknown) =>
  Effect.gen(function* () {
    const { call } = yield* TestServer
    const { headers, status } = yield* call(method, path, {
      headers: PublicServer.keyHeader("spk_all"),
      ...(body === undefined ? {} : { body })
    })
    return [status, headers.get("x-spoke-warning")]
  })

layer(PublicServer.layer, { excludeTestServices: true })("A field that /v1 does not know", (it) => {
  it.effect("is ignored with a warning that names the field that was probably meant", () =>
    Effect.gen(function* () {
      expect(yield* warning("POST", "/v1/retrieve", { query: "Hats", top_k: 3 })).toEqual([
        200,
        "unknown field top_k; did you mean topK?"
      ])
      expect(yield* warning("POST", "/v1/chat", { message: "Hi", wings: 2 })).toEqual([
        200,
        "unknown field wings"
      ])
      expect(yield* warning("POST", "/v1/chat", { message: "Hi", externalEndUserid: "7" })).toEqual([
        200,
        "unknown field externalEndUserid; did you mean externalEndUserId?"
      ])
    })
  )

  it.effect("is reported inside objects, but not in objects with arbitrary fields", () =>
    Effect.gen(function* () {
      expect(
        yield* warning("POST", "/v1/retrieve", { query: "Hats", filter: { sourceId: ["src_1"] } })
      ).toEqual([200, "unknown field filter.sourceId; did you mean sourceIds?"])
      expect(yield* warning("POST", "/v1/chat", { message: "Hi", context: { any: { thing: 1 } } })).toEqual([
        200,
        null
      ])
    })
  )

  it.effect("is reported in a query too", () =>
    Effect.gen(function* () {
      expect(yield* warning("GET", "/v1/sources?limt=5&limit=6")).toEqual([
        200,
        "unknown field limt; did you mean limit?"
      ])
      expect(yield* warning("GET", "/v1/sources?limit=6")).toEqual([200, null])
    })
  )

  it.effect("is reported together with a refusal and a rate limit", () =>
    Effect.gen(function* () {
      expect(yield* warning("POST", "/v1/chat", { mesage: "Hi" })).toEqual([
        400,
        "unknown field mesage; did you mean message?"
      ])
      const { call } = yield* TestServer
      const { headers } = yield* call("POST", "/v1/retrieve", {
        headers: PublicServer.keyHeader("spk_limited"),
        body: { query: "Hats", top_k: 3 }
      })
      expect([headers.get("ratelimit-limit"), headers.get("x-spoke-warning")]).toEqual([
        "3",
        "unknown field top_k; did you mean topK?"
      ])
    })
  )

  it.effect("makes a header of limited length in ASCII for any number of strange names", () =>
    Effect.gen(function* () {
      const many = Object.fromEntries(
        Array.from({ length: 20_000 }, (_, place) => [
          `field_${String(place).replaceAll(/\d/g, (digit) => "abcdefghij".charAt(Number(digit)))}`,
          1
        ])
      )
      const [status, told] = yield* warning("POST", "/v1/chat", { message: "Hi", ...many })
      expect(status).toBe(200)
      expect(String(told).split(", ")).toHaveLength(5)
      const strange = { message: "Hi", ["a\r\nset-cookie: x, é\u{1F600}"]: 1, ["n".repeat(5_000)]: 1 }
      const [, sanitised] = yield* warning("POST", "/v1/chat", strange)
      expect(sanitised).toMatch(/^[\x20-\x7e]{1,400}$/u)
      expect(sanitised).toBe("unknown field of 21 characters, unknown field of 5000 characters")
    })
  )
})

describe("The field that was probably meant", () => {
  it("differs in a few letters, and is omitted if no field is similar", () => {
    const known = ["topK", "minScore", "filter", "query"]
    expect(unknownField([], "min-score", known)).toBe("unknown field min-score; did you mean minScore?")
    expect(unknownField([], "filters", known)).toBe("unknown field filters; did you mean filter?")
    expect(unknownField(["a", 0], "qery", known)).toBe("unknown field a.0.qery; did you mean query?")
    expect(unknownField([], "temperature", known)).toBe("unknown field temperature")
    // It may be a secret in the wrong place.
    expect(unknownField([], "s".repeat(33), known)).toBe("unknown field of 33 characters")
    expect(unknownField([], "hunter2hunter2", known)).toBe("unknown field of 14 characters")
    expect(unknownField([], "", known)).toBe("unknown field ")
  })
})
