/** Nothing is limited unless configured; a limited key is told how it stands. */
import { expect, it as test, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { RateLimiter, RateLimiterError } from "../../../src/capabilities/RateLimiter.ts"
import { RateLimits, RateLimitSettings } from "../../../src/usecases/billing/RateLimits.ts"
import { keyHeader, layer as PublicServer, liveKey, Script } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"

const names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy"]

layer(PublicServer, { excludeTestServices: true })("a rate limit", (it) => {
  it.effect(
    "is in the headers of every answer, and refuses with 429 before the body is read or anything is done",
    () =>
      Effect.gen(function* () {
        const { call } = yield* TestServer
        const { asked } = yield* Script
        const retrieve = (body: unknown) =>
          call("POST", "/v1/retrieve", { headers: keyHeader("spk_limited"), body })
        const told = ({ headers }: { readonly headers: Headers }) => [
          headers.get("ratelimit-limit"),
          headers.get("ratelimit-remaining"),
          headers.get("ratelimit-policy")
        ]
        const first = yield* retrieve({ query: "Hi" })
        expectData(first)
        expect(told(first)).toEqual(["3", "2", "3;w=3600"])
        expect(Number(first.headers.get("ratelimit-reset"))).toBeGreaterThan(3_500)
        const invalid = yield* retrieve({ query: 5 })
        expectError(invalid, 400, "VALIDATION_ERROR")
        expect(told(invalid)).toEqual(["3", "1", "3;w=3600"])
        const other = yield* call("GET", "/v1/usage", { headers: keyHeader("spk_limited") })
        expect(told(other)).toEqual(["3", "0", "3;w=3600"])
        const before = yield* Ref.get(asked)
        for (const body of [{ query: "Hi" }, { query: 5 }, "{"]) {
          const refused = yield* retrieve(body)
          expectError(refused, 429, "RATE_LIMITED")
          expect(told(refused)).toEqual(["3", "0", "3;w=3600"])
          const wait = refused.json.error.details.retryAfterSeconds
          expect(refused.headers.get("retry-after")).toBe(String(wait))
          expect(refused.headers.get("ratelimit-reset")).toBe(String(wait))
          expect(refused.json.error.details.limit).toEqual({ requests: 3, window: 3_600 })
        }
        expect(yield* Ref.get(asked)).toEqual(before)
      })
  )

  it.effect("counts only permitted requests, and sends no headers to keys without a limit", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const ask = (secret: string, path: string) =>
        call("POST", path, { headers: keyHeader(secret), body: { query: "Hi", message: "Hi" } })
      for (const _ of [1, 2, 3]) {
        expectError(yield* ask("spk_limited_chat", "/v1/retrieve"), 403, "FORBIDDEN")
      }
      expectData(yield* ask("spk_limited_chat", "/v1/chat"))
      expectError(yield* ask("spk_limited_chat", "/v1/chat"), 429, "RATE_LIMITED")
      const free = [yield* ask("spk_chat", "/v1/chat"), yield* ask("spk_nobody", "/v1/chat")]
      for (const { headers } of free) {
        expect(names.filter((name) => headers.has(name))).toEqual([])
      }
    })
  )

  it.effect("may be read by pages of other origins", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const { headers } = yield* call("GET", "/healthz")
      const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? []
      expect(exposed).toEqual(expect.arrayContaining([...names, "retry-after"]))
    })
  )
})

const asked = Effect.fn(function* (limiter: RateLimiter["Type"], defaultLimit = { requests: 1, window: 60 }) {
  return yield* RateLimits.pipe(
    Effect.provide(
      RateLimits.Default.pipe(
        Layer.provide(Layer.succeed(RateLimiter, limiter)),
        Layer.provide(Layer.succeed(RateLimitSettings, { rateLimit: defaultLimit }))
      )
    )
  )
})

const unreachable = RateLimiter.of({ take: () => new RateLimiterError({ message: "It is gone." }) })

test.effect("allows requests when they cannot be counted", () =>
  Effect.gen(function* () {
    const limits = yield* asked(unreachable)
    expect(yield* limits.take(liveKey(), "::1", false)).toBe(null)
  })
)

test.effect(
  "reads no counter for repeated refused requests, and applies to each caller of a page separately",
  () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const limits = yield* asked(
        RateLimiter.of({
          take: (name, { requests }) =>
            Effect.sync(() => {
              seen.push(`${name} ${requests}`)
              return { granted: false, remaining: 0, reset: 30_000 }
            })
        })
      )
      const key = liveKey()
      for (const _ of [1, 2, 3]) {
        expect(yield* limits.take(key, "::1", false)).toMatchObject({ granted: false, reset: 30 })
      }
      // Raised: asked anew.
      yield* limits.take({ ...key, rateLimit: { requests: 9, window: 60 } }, "::1", false)
      const page = liveKey({ allowedOrigins: ["https://a.test"] })
      for (const address of ["::1", "::2", "::1"]) yield* limits.take(page, address, false)
      expect(seen).toEqual(["key_1 1", "key_1 9", "key_1@::1 1", "key_1@::2 1"])
      // The public name of a widget without a list of origins, with a limit of its own to be asked anew.
      const widget = { ...key, rateLimit: { requests: 5, window: 60 } }
      for (const address of ["::1", "::2", "::1"]) yield* limits.take(widget, address, true)
      expect(seen.slice(4)).toEqual(["key_1@::1 5", "key_1@::2 5"])
    })
)
