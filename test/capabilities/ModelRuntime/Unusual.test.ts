/** Answers that are legal, but that not every provider gives. */
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { problemOf } from "../../../src/capabilities/ModelRuntime.ts"
import * as AnthropicMessages from "../../../src/capabilities/ModelRuntime/AnthropicMessages.ts"
import * as ChatCompletions from "../../../src/capabilities/ModelRuntime/ChatCompletions.ts"
import { collect, environment, failing, runtimeOf, Stub, textOf } from "./Harness.ts"

const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const frames = (...values: ReadonlyArray<unknown>) => ({ raw: [...values.map(frame), "data: [DONE]\n\n"] })
const delta = (given: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: given, finish_reason: finish }]
})

layer(Layer.provideMerge(runtimeOf(ChatCompletions.layer), environment), { excludeTestServices: true })(
  "ChatCompletions, unusual answers",
  (it) => {
    const stub = Effect.tap(Stub, (found) => Effect.sync(found.reset))

    it.effect("content in parts is a reply of its texts, and thinking is reasoning", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const thought = { type: "thinking", thinking: [{ type: "text", text: "Hm. " }], closed: false }
        script.push(
          frames(
            delta({ role: "assistant", content: "" }),
            delta({ content: [thought] }),
            delta({ content: [{ type: "thinking", thinking: "Yes." }] }),
            delta({
              content: [
                { type: "text", text: "Paris " },
                { type: "reference", reference_ids: [1] }
              ]
            }),
            delta({ content: "is it." }),
            delta({ content: [] }, "stop")
          )
        )
        const parts = yield* collect()
        expect(textOf(parts)).toBe("Paris is it.")
        expect(parts.map((part) => (part._tag === "ReasoningDelta" ? part.delta : "")).join("")).toBe(
          "Hm. Yes."
        )
        expect(parts.at(-1)).toMatchObject({ _tag: "Finish", reason: "stop" })
      })
    )

    it.effect("content of any other form is malformed", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        for (const content of [7, {}, [7], [{ type: "text", text: 7 }]]) {
          script.push(frames(delta({ content }), delta({}, "stop")))
          expect((yield* failing()).error.reason).toBe("Malformed")
        }
      })
    )

    it.effect("arguments of a call may be an object", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const call = { id: "a", function: { name: "weather", arguments: { city: "Oslo" } } }
        script.push(frames(delta({ tool_calls: [call] }, "tool_calls")))
        const calls = (yield* collect()).flatMap((part) => (part._tag === "ToolCall" ? [part.input] : []))
        expect(calls).toEqual([{ city: "Oslo" }])
      })
    )

    it.effect("errors in a list have the problem of the error, as in an object", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const errors = [
          [{ code: "insufficient_quota" }, 429, "quota_spent"],
          [{ code: "model_not_found" }, 400, "model_unknown"],
          [{ code: 400, details: [{ reason: "API_KEY_INVALID" }] }, 400, "key_refused"]
        ] as const
        for (const [error, status, problem] of errors) {
          for (const body of [{ error }, [{ error }], { object: "error", ...error }]) {
            script.push({ status, body })
            expect(problemOf((yield* failing()).error)).toBe(problem)
          }
        }
      })
    )

    it.effect("errors in the stream are failures also in a list, or without a member for the error", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const error = { code: 429, message: "Too many requests" }
        for (const sent of [[{ error }], { object: "error", ...error }]) {
          script.push(frames(sent))
          expect((yield* failing()).error).toMatchObject({ reason: "RateLimited", retryable: true })
        }
      })
    )

    it.effect("a finish by an error is a failure, and not the end of a reply", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        script.push(frames(delta({ content: "Half" }), delta({}, "error")))
        const { error, parts } = yield* failing()
        expect(textOf(parts)).toBe("Half")
        expect(error).toMatchObject({ reason: "Truncated", retryable: false })
        script.push(frames(delta({ role: "assistant" }), delta({}, "insufficient_system_resource")))
        expect((yield* failing()).error).toMatchObject({ reason: "Unreachable", retryable: true })
      })
    )

    it.effect("a reply cut at the model's own limit is one of full length", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        for (const reason of ["model_length", "max_tokens"]) {
          script.push(frames(delta({ content: "Half" }), delta({}, reason)))
          expect((yield* collect()).at(-1)).toMatchObject({ _tag: "Finish", reason: "length" })
        }
      })
    )

    it.effect("keep-alives, other fields, CRLF, a byte order mark and split characters do not matter", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const answer = [
          "\uFEFF: OPENROUTER PROCESSING",
          "",
          `data: ${JSON.stringify({ choices: [], prompt_filter_results: [] })}`,
          "",
          "event: ping",
          "data:",
          "",
          "id: 7",
          `data: ${JSON.stringify({ ...delta({ role: "assistant", content: null }), system_fingerprint: "a" })}`,
          "",
          `data:${JSON.stringify({ ...delta({ content: "Grüße 👋" }), system_fingerprint: "b" })}`,
          "",
          `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: "stop" }] })}`,
          "",
          `data: ${JSON.stringify({ choices: null, usage: { prompt_tokens: 5, completion_tokens: 2 } })}`,
          "",
          "data: [DONE]",
          "",
          ""
        ].join("\r\n")
        script.push({ raw: Array.from(Buffer.from(answer), (byte) => Uint8Array.of(byte)) })
        const parts = yield* collect()
        expect(textOf(parts)).toBe("Grüße 👋")
        expect(parts.at(-1)).toMatchObject({ reason: "stop", inputTokens: 5, outputTokens: 2 })
      })
    )
  }
)

layer(Layer.provideMerge(runtimeOf(AnthropicMessages.layer), environment), { excludeTestServices: true })(
  "AnthropicMessages, unusual answers",
  (it) => {
    it.effect("arguments that come whole keep all digits of long integers", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        const start = `{"type":"content_block_start","index":0,"content_block":
          {"type":"tool_use","id":"a","name":"order","input":{"id":1234567890123456789}}}`
        script.push({
          raw: [
            frame({ type: "message_start", message: {} }),
            `data: ${start.replaceAll("\n", " ")}\n\n`,
            frame({ type: "content_block_stop", index: 0 }),
            frame({ type: "message_delta", delta: { stop_reason: "tool_use" } }),
            frame({ type: "message_stop" })
          ]
        })
        const calls = (yield* collect()).flatMap((part) => (part._tag === "ToolCall" ? [part.input] : []))
        expect(calls).toEqual([{ id: "1234567890123456789" }])
      })
    )
  }
)
