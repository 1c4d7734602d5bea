/** Failures of providers, and their messages. */
import * as Prompt from "@effect/ai/Prompt"
import { expect, it, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { describe } from "vitest"
import { ModelError, problemOf } from "../../../src/capabilities/ModelRuntime.ts"
import * as ChatCompletions from "../../../src/capabilities/ModelRuntime/ChatCompletions.ts"
import { exchange } from "../../../src/app/Providers.ts"
import { environment, failing, key, requestOf, runtimeOf, Stub, suites, textOf } from "./Harness.ts"

const frame = (event: unknown) => `data: ${JSON.stringify(event)}\n\n`

/** What a provider sends before the first text. */
const begun: Record<(typeof suites)[number][0], ReadonlyArray<unknown>> = {
  ChatCompletions: [{ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] }],
  Responses: [{ type: "response.created", response: {} }],
  AnthropicMessages: [
    { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }
  ]
}
const texts: typeof begun = {
  ChatCompletions: [{ choices: [{ index: 0, delta: { content: "one" } }] }],
  Responses: [{ type: "response.output_text.delta", delta: "one" }],
  AnthropicMessages: [{ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "one" } }]
}
const brokenBy: Record<keyof typeof begun, (error: object) => unknown> = {
  ChatCompletions: (error) => ({ error, choices: [{ index: 0, delta: {}, finish_reason: "error" }] }),
  Responses: (error) => ({ type: "response.failed", response: { error } }),
  AnthropicMessages: (error) => ({ type: "error", error })
}

for (const [name, make] of suites) {
  layer(Layer.provideMerge(runtimeOf(make), environment), { excludeTestServices: true })(
    `${name}, failures`,
    (it) => {
      const stub = Effect.tap(Stub, (found) => Effect.sync(found.reset))

      const statuses = [
        [400, "Rejected", false, "request_refused"],
        [401, "Rejected", false, "key_refused"],
        [402, "Rejected", false, "quota_spent"],
        [403, "Rejected", false, "key_refused"],
        [404, "Rejected", false, "model_unknown"],
        [429, "RateLimited", true, "rate_limited"],
        [500, "Unreachable", true, "unreachable"],
        [503, "Unreachable", true, "unreachable"]
      ] as const
      for (const [status, reason, retryable, problem] of statuses) {
        it.effect(`status ${status} is ${reason}${retryable ? ", and may be sent again" : ""}`, () =>
          Effect.gen(function* () {
            const { script } = yield* stub
            script.push({ status })
            const { error } = yield* failing()
            expect(error).toMatchObject({ reason, retryable })
            expect(problemOf(error)).toBe(problem)
            expect(error.retryAfter).toBe(undefined)
          })
        )
      }

      it.effect("hands on the pause that the provider asks for", () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          script.push({ status: 429, headers: { "retry-after": "3" } })
          script.push({ status: 503, headers: { "retry-after": "1", "retry-after-ms": "250" } })
          expect((yield* failing()).error.retryAfter).toMatchObject({ value: { millis: 3_000 } })
          expect((yield* failing()).error.retryAfter).toMatchObject({ value: { millis: 250 } })
        })
      )

      it.effect("a spent budget is not sent again, though it comes as 429", () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          script.push({ status: 429, body: { error: { message: "You have…", code: "insufficient_quota" } } })
          const { error } = yield* failing()
          expect(error).toMatchObject({ reason: "Rejected", retryable: false })
          expect(problemOf(error)).toBe("quota_spent")
          expect(error.message).toContain("insufficient_quota")
        })
      )

      it.effect("a reset before the first byte may be sent again", () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          script.push({ silent: "reset" })
          expect((yield* failing()).error).toMatchObject({ reason: "Unreachable", retryable: true })
        })
      )

      const breaks = [
        ["cut", "Truncated", "a clean end without a finish"],
        ["reset", "Truncated", "a reset in the middle"],
        ["error", "Truncated", "an error event"],
        ["garbage", "Malformed", "a frame that is not JSON"],
        ["shape", "Malformed", "a frame of a wrong shape"]
      ] as const
      for (const [kind, reason, what] of breaks) {
        it.effect(`${what} is a failure after the text that came, never a finish`, () =>
          Effect.gen(function* () {
            const { script } = yield* stub
            script.push({ text: "one two three four", breaks: kind })
            const { parts, error } = yield* failing()
            expect(textOf(parts)).toBe("one two")
            expect(parts.some(({ _tag }) => _tag === "Finish")).toBe(false)
            expect(error).toMatchObject({ reason, retryable: false })
          })
        )
      }

      const errors = [
        [{ type: "server_error", code: "server_error" }, "Unreachable", true, "unreachable"],
        [{ type: "overloaded_error" }, "Unreachable", true, "unreachable"],
        [{ code: 502, message: "canary" }, "Unreachable", true, "unreachable"],
        [{ code: "rate_limit_exceeded" }, "RateLimited", true, "rate_limited"],
        [{ code: 429, message: "canary" }, "RateLimited", true, "rate_limited"],
        [{ code: "insufficient_quota" }, "Rejected", false, "quota_spent"],
        [{ code: 400, message: "canary" }, "Truncated", false, "answer_broken"]
      ] as const
      for (const [streamed, reason, retryable, problem] of errors) {
        it.effect(`an error event before any text, ${JSON.stringify(streamed)}, is ${reason}`, () =>
          Effect.gen(function* () {
            const { script } = yield* stub
            script.push({ raw: begun[name].concat(brokenBy[name](streamed)).map(frame) })
            const { error, parts } = yield* failing()
            expect(parts).toEqual([])
            expect(error).toMatchObject({ reason, retryable })
            expect(problemOf(error)).toBe(problem)
          })
        )
      }

      it.effect("an error event after text that arrives with it is no reason to send the request again", () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          const frames = begun[name].concat(texts[name], brokenBy[name]({ type: "server_error", code: 503 }))
          script.push({ raw: [frames.map(frame).join("")] })
          const { error, parts } = yield* failing()
          expect(textOf(parts)).toBe("one")
          expect(error).toMatchObject({ reason: "Truncated", retryable: false })
        })
      )

      it.effect("a 200 that is not an event stream is a failure", () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          script.push({ raw: ["<html>Welcome to the hotel network</html>"], contentType: "text/html" })
          script.push({ raw: [] })
          expect((yield* failing()).error.reason).toBe("Malformed")
          expect((yield* failing()).error.reason).toBe("Truncated")
        })
      )

      it.effect("no failure repeats the key, or what the provider or the request said", () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          const said = {
            error: { message: `Incorrect API key provided: ${key}`, code: key, type: "secret-type" }
          }
          script.push({ status: 401, body: said, headers: { "x-secret": "header-canary" } })
          script.push({ raw: [`data: ${JSON.stringify(said)}\n\n`] })
          script.push({ raw: [`data: {"broken": "body-canary\n\n`] })
          script.push({ silent: "reset" })
          for (let count = 0; count < 4; count++) {
            const { error } = yield* failing(requestOf({ prompt: Prompt.make("prompt-canary") }))
            const shown = [
              JSON.stringify(error),
              String(error),
              error.stack ?? "",
              String(error.cause ?? "")
            ].join()
            expect(shown).not.toMatch(/canary|secret-type|Incorrect/)
            expect(error).toBeInstanceOf(ModelError)
          }
        })
      )
    }
  )
}

describe("ModelRuntime", () => {
  it.effect("a provider that cannot be reached may be asked again, and the error says how it failed", () =>
    Effect.gen(function* () {
      const { error } = yield* failing()
      expect(error).toMatchObject({ reason: "Unreachable", retryable: true })
      expect(error.message).toContain("ECONNREFUSED")
    }).pipe(
      Effect.provide(
        ChatCompletions.layer({
          apiKey: Redacted.make(key),
          // Port 1 (tcpmux) is closed on every machine that runs tests.
          baseUrl: "http://127.0.0.1:1/v1",
          defaultModel: "stub-model"
        }).pipe(Layer.provide(exchange))
      )
    )
  )
})
