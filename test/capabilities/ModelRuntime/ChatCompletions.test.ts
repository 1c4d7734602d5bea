/** Differences between providers of `/chat/completions`. */
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ChatCompletions from "../../../src/capabilities/ModelRuntime/ChatCompletions.ts"
import { collect, environment, failing, runtimeOf, Stub } from "./Harness.ts"

layer(Layer.provideMerge(runtimeOf(ChatCompletions.layer), environment), { excludeTestServices: true })(
  "ChatCompletions, other providers",
  (it) => {
    const frames = (...values: ReadonlyArray<unknown>) => ({
      raw: [...values.map((value) => `data: ${JSON.stringify(value)}\n\n`), "data: [DONE]\n\n"]
    })

    it.effect("whole calls that all claim slot 0 are calls of their own", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        const call = (id: string, city: string) => ({
          choices: [
            {
              delta: {
                tool_calls: [{ index: 0, id, function: { name: "weather", arguments: `{"city":"${city}"}` } }]
              },
              finish_reason: id === "b" ? "stop" : null
            }
          ]
        })
        script.push(frames(call("a", "Oslo"), call("b", "Rome")))
        const parts = yield* collect()
        expect(parts.flatMap((part) => (part._tag === "ToolCall" ? [part.input] : []))).toEqual([
          { city: "Oslo" },
          { city: "Rome" }
        ])
        expect(parts.at(-1)).toMatchObject({ _tag: "Finish", reason: "tool-calls" })
      })
    )

    it.effect("whole calls without an id, each in a frame of its own, are calls of their own", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        const call = (name: string, input: string, id?: string) => ({
          choices: [{ delta: { tool_calls: [{ index: 0, id, function: { name, arguments: input } }] } }]
        })
        script.push(
          frames(
            call("weather", '{"city":"Oslo"}'),
            call("weather", '{"city":"Rome"}', ""),
            call("time", "{}"),
            { choices: [{ delta: {}, finish_reason: "tool_calls" }] }
          )
        )
        const calls = (yield* collect()).flatMap((part) => (part._tag === "ToolCall" ? [part] : []))
        expect(calls.map(({ input, name }) => [name, input])).toEqual([
          ["weather", { city: "Oslo" }],
          ["weather", { city: "Rome" }],
          ["time", {}]
        ])
        expect(new Set(calls.map(({ id }) => id)).size).toBe(3)
      })
    )

    it.effect("a name that comes again with each piece of the arguments begins no further call", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        const piece = (input: string) => ({
          choices: [{ delta: { tool_calls: [{ function: { name: "weather", arguments: input } }] } }]
        })
        script.push(
          frames(piece('{"city":'), piece('"{}"'), piece("}"), {
            choices: [{ delta: {}, finish_reason: "stop" }]
          })
        )
        const calls = (yield* collect()).flatMap((part) => (part._tag === "ToolCall" ? [part.input] : []))
        expect(calls).toEqual([{ city: "{}" }])
      })
    )

    it.effect("calls without an id are given one each", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        const tool_calls = [
          { function: { name: "a", arguments: "{}" } },
          { function: { name: "b", arguments: "{}" } }
        ]
        script.push(frames({ choices: [{ delta: { tool_calls }, finish_reason: "tool_calls" }] }))
        const ids = (yield* collect()).flatMap((part) => (part._tag === "ToolCall" ? [part.id] : []))
        expect(new Set(ids).size).toBe(2)
        expect(ids.every((id) => id.length > 4)).toBe(true)
      })
    )

    it.effect("an end after the finish reason and without [DONE] is an end", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({
          raw: ['data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n']
        })
        expect((yield* collect()).map(({ _tag }) => _tag)).toEqual(["TextDelta", "Finish"])
      })
    )

    it.effect("a reply without end is a failure, and so are names of tools without end", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        const content = "x".repeat(64 * 1024)
        script.push(frames(...Array.from({ length: 20 }, () => ({ choices: [{ delta: { content } }] }))))
        expect((yield* failing()).error.reason).toBe("Malformed")
        const tool_calls = [{ index: 0, id: "a", function: { name: content } }]
        script.push(frames(...Array.from({ length: 20 }, () => ({ choices: [{ delta: { tool_calls } }] }))))
        expect((yield* failing()).error.reason).toBe("Malformed")
      })
    )

    it.effect("an event over the limit is a failure, not a buffer without end", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({ raw: Array.from({ length: 10 }, () => "x".repeat(1024 * 1024)) })
        expect((yield* failing()).error.reason).toBe("Malformed")
      })
    )
  }
)
