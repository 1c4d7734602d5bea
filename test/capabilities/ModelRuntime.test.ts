/** The contract of complete answers, for every provider interface. */
import * as Prompt from "@effect/ai/Prompt"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  collect,
  environment,
  failing,
  key,
  requestOf,
  runtimeOf,
  Stub,
  suites,
  textOf,
  user,
  weather
} from "./ModelRuntime/Harness.ts"

const file = (mediaType: string, data: string | Uint8Array | URL, fileName?: string) =>
  Prompt.filePart({ mediaType, data, ...(fileName !== undefined && { fileName }) })

const conversation = Prompt.fromMessages([
  Prompt.systemMessage({ content: "Be brief." }),
  user("What is the weather in Oslo?"),
  Prompt.assistantMessage({
    content: [
      Prompt.textPart({ text: "I look." }),
      Prompt.toolCallPart({ id: "c1", name: "weather", params: { city: "Oslo" }, providerExecuted: false }),
      Prompt.toolCallPart({ id: "c2", name: "weather", params: "not an object", providerExecuted: false })
    ]
  }),
  Prompt.toolMessage({
    content: [
      Prompt.toolResultPart({
        id: "c1",
        name: "weather",
        isFailure: false,
        result: { degrees: 3 },
        providerExecuted: false
      }),
      Prompt.toolResultPart({
        id: "c2",
        name: "weather",
        isFailure: true,
        result: "The arguments are not an object.",
        providerExecuted: false
      })
    ]
  })
])

for (const [name, make, path] of suites) {
  layer(Layer.provideMerge(runtimeOf(make), environment), { excludeTestServices: true })(name, (it) => {
    const stub = Effect.tap(Stub, (found) => Effect.sync(found.reset))

    it.effect("streams the text token by token and ends with a finish and the usage", () =>
      Effect.gen(function* () {
        const { script, requests } = yield* stub
        script.push({ text: "Grüße, 世界 👋!", usage: { input: 11, output: 4 } })
        const parts = yield* collect()
        const thought = path === "/messages" ? ["ReasoningDelta", "Reasoning"] : []
        expect(parts.slice(0, -1).map(({ _tag }) => _tag)).toEqual([
          ...thought,
          "TextDelta",
          "TextDelta",
          "TextDelta"
        ])
        expect(textOf(parts)).toBe("Grüße, 世界 👋!")
        expect(parts.at(-1)).toEqual({ _tag: "Finish", reason: "stop", inputTokens: 11, outputTokens: 4 })
        const [sent] = requests
        expect(sent?.path).toBe(path)
        expect(path === "/messages" ? sent?.headers["x-api-key"] : sent?.headers.authorization).toBe(
          path === "/messages" ? key : `Bearer ${key}`
        )
        expect(sent?.headers["anthropic-version"]).toBe(path === "/messages" ? "2023-06-01" : undefined)
        expect(sent?.body).toMatchObject({ model: "stub-model", stream: true })
        expect(
          Object.keys(sent?.headers ?? {}).filter((header) => /^(b3|traceparent|x-b3)/.test(header))
        ).toEqual([])
      })
    )

    it.effect("uses the agent's model when it names one", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        yield* collect(requestOf({ model: "other-model" }))
        expect(requests[0]?.body.model).toBe("other-model")
      })
    )

    it.effect("declares tools that may not be called only where the provider requires them", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        yield* collect(requestOf({ withdrawnTools: [weather] }))
        const body = requests[0]?.body
        if (path !== "/messages") return expect(body).not.toHaveProperty("tools")
        expect(body).toMatchObject({ tools: [{ name: "weather" }], tool_choice: { type: "none" } })
      })
    )

    it.effect("estimates the usage when the provider sends none", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        script.push({ text: "One two three four.", usage: null })
        const finish = (yield* collect()).at(-1)
        expect(finish).toEqual({
          _tag: "Finish",
          reason: "stop",
          inputTokens: 5,
          outputTokens: 5,
          isEstimated: true
        })
      })
    )

    it.effect("says why the model stopped", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        script.push({ text: "Too lo", finish: "length" }, { text: "Bad", finish: "content_filter" })
        expect((yield* collect()).at(-1)).toMatchObject({ reason: "length" })
        expect((yield* collect()).at(-1)).toMatchObject({ reason: "content-filter" })
      })
    )

    it.effect("declares tools by their run-time schema, not strict", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        yield* collect(requestOf({ tools: [weather] }))
        const [tool] = requests[0]?.body.tools ?? []
        if (path === "/messages") {
          const { description, name, parameters } = weather
          return expect(tool).toEqual({ name, description, input_schema: parameters })
        }
        expect(tool.type).toBe("function")
        expect(path === "/responses" ? tool : tool.function).toMatchObject({ ...weather, strict: false })
      })
    )

    it.effect("gathers tool calls, and hands on arguments that are not an object as they came", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        script.push({
          text: "Let me look.",
          calls: [
            { name: "weather", arguments: '{"city":"Tromsø"}' },
            { name: "invented", arguments: "[1]" },
            { name: "weather", arguments: '{"city":' },
            { name: "now", arguments: "" }
          ]
        })
        const parts = yield* collect(requestOf({ tools: [weather] }))
        expect(textOf(parts)).toBe("Let me look.")
        expect(parts.filter(({ _tag }) => _tag === "ToolCall")).toEqual([
          {
            _tag: "ToolCall",
            id: "call_stub_0",
            name: "weather",
            input: { city: "Tromsø" },
            rawInput: '{"city":"Tromsø"}'
          },
          { _tag: "ToolCall", id: "call_stub_1", name: "invented", input: null, rawInput: "[1]" },
          { _tag: "ToolCall", id: "call_stub_2", name: "weather", input: null, rawInput: '{"city":' },
          { _tag: "ToolCall", id: "call_stub_3", name: "now", input: {}, rawInput: "" }
        ])
        expect(parts.at(-1)).toMatchObject({ _tag: "Finish", reason: "tool-calls" })
      })
    )

    it.effect("reads events wherever the bytes are cut, also inside a character", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const bytes = new TextEncoder().encode(
          path === "/messages"
            ? ': ping\r\n\r\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\r\n\r\n' +
                'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"né👋"}}\r\n\r\n' +
                'event: message_delta\r\ndata: {"type":"message_delta",\r\n' +
                'data: "delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\r\n\r\n' +
                'data: {"type":"message_stop"}\r\n\r\n'
            : path === "/responses"
              ? ': ping\r\n\r\ndata: {"type":"response.output_text.delta","delta":"né👋"}\r\n\r\n' +
                'event: response.completed\r\ndata: {"type":"response.completed",\r\n' +
                'data: "response":{"output":[],"usage":{"input_tokens":1,"output_tokens":2}}}\r\n\r\n'
              : ': ping\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"né👋"}}]}\r\n\r\n' +
                'data: {"choices":[{"index":0,"delta":{},\r\ndata: "finish_reason":"stop"}],' +
                '"usage":{"prompt_tokens":1,"completion_tokens":2}}\r\n\r\ndata: [DONE]\r\n\r\n'
        )
        script.push({ raw: Array.from(bytes, (byte) => Uint8Array.of(byte)) })
        const parts = yield* collect()
        expect(parts).toEqual([
          { _tag: "TextDelta", delta: "né👋" },
          { _tag: "Finish", reason: "stop", inputTokens: 1, outputTokens: 2 }
        ])
      })
    )

    it.effect("hands on only text that can be stored: no NUL, no half of a character", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        const call = { name: "we\u0000ather", arguments: '{"ci\\u0000ty":["a\\u0000b","\\ud800"]}' }
        script.push({ text: "nul\u0000 lone\ud800", calls: [call] })
        const split = (delta: string) =>
          path === "/messages"
            ? { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: delta } }
            : path === "/responses"
              ? { type: "response.output_text.delta", delta }
              : { choices: [{ delta: { content: delta } }] }
        const finish =
          path === "/messages"
            ? { type: "message_delta", delta: { stop_reason: "end_turn" } }
            : path === "/responses"
              ? { type: "response.completed", response: {} }
              : { choices: [{ delta: {}, finish_reason: "stop" }] }
        script.push({
          raw: [split("a\ud83d"), split("\udc4b"), split("\ud83d"), finish].map(
            (event) => `data: ${JSON.stringify(event)}\n\n`
          )
        })
        const parts = yield* collect()
        expect(textOf(parts)).toBe("nul lone\ufffd")
        expect(parts.find(({ _tag }) => _tag === "ToolCall")).toMatchObject({
          name: "weather",
          input: { city: ["ab", "\ufffd"] }
        })
        expect((yield* collect()).filter(({ _tag }) => _tag === "TextDelta")).toEqual(
          ["a", "👋", "\ufffd"].map((delta) => ({ _tag: "TextDelta", delta }))
        )
      })
    )

    it.effect("sends history, tool calls and tool results in the interface's words", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        yield* collect(requestOf({ prompt: conversation }))
        const body = requests[0]?.body
        const question = { role: "user", content: "What is the weather in Oslo?" }
        const system = { role: "system", content: "Be brief." }
        const refused = "The arguments are not an object."
        if (path === "/messages") {
          const use = (id: string, input: object) => ({ type: "tool_use", id, name: "weather", input })
          const result = (id: string, content: string) => ({ type: "tool_result", tool_use_id: id, content })
          expect([body.system, body.max_tokens]).toEqual(["Be brief.", 16_384])
          expect(body.messages).toEqual([
            { role: "user", content: [{ type: "text", text: "What is the weather in Oslo?" }] },
            {
              role: "assistant",
              content: [{ type: "text", text: "I look." }, use("c1", { city: "Oslo" }), use("c2", {})]
            },
            {
              role: "user",
              content: [result("c1", '{"degrees":3}'), { ...result("c2", refused), is_error: true }]
            }
          ])
        } else if (path === "/responses") {
          expect(body.store).toBe(false)
          expect(body.input).toEqual([
            system,
            question,
            { role: "assistant", content: "I look." },
            { type: "function_call", call_id: "c1", name: "weather", arguments: '{"city":"Oslo"}' },
            { type: "function_call", call_id: "c2", name: "weather", arguments: "{}" },
            { type: "function_call_output", call_id: "c1", output: '{"degrees":3}' },
            { type: "function_call_output", call_id: "c2", output: refused }
          ])
        } else {
          const call = (id: string, args: string) => ({
            id,
            type: "function",
            function: { name: "weather", arguments: args }
          })
          expect(body.stream_options).toEqual({ include_usage: true })
          expect(body.messages).toEqual([
            system,
            question,
            {
              role: "assistant",
              content: "I look.",
              tool_calls: [call("c1", '{"city":"Oslo"}'), call("c2", "{}")]
            },
            { role: "tool", tool_call_id: "c1", content: '{"degrees":3}' },
            { role: "tool", tool_call_id: "c2", content: refused }
          ])
        }
      })
    )

    it.effect("sends images, PDF and text files beside the message", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        const prompt = Prompt.fromMessages([
          Prompt.userMessage({
            content: [
              Prompt.textPart({ text: "See" }),
              file("image/png", Uint8Array.of(1, 2, 3)),
              file("image/jpeg", new URL("https://example.com/a.jpg")),
              file("application/pdf", "AQID", "plan.pdf"),
              file("text/plain", new TextEncoder().encode("naïve"), "note.txt")
            ]
          })
        ])
        yield* collect(requestOf({ prompt }))
        const body = requests[0]?.body
        if (path === "/messages") {
          const inline = (media_type: string) => ({ type: "base64", media_type, data: "AQID" })
          return expect(body.messages[0].content).toEqual([
            { type: "text", text: "See" },
            { type: "image", source: inline("image/png") },
            { type: "image", source: { type: "url", url: "https://example.com/a.jpg" } },
            { type: "document", title: "plan.pdf", source: inline("application/pdf") },
            { type: "text", text: "note.txt:\nnaïve" }
          ])
        }
        const png = "data:image/png;base64,AQID"
        const pdf = { filename: "plan.pdf", file_data: "data:application/pdf;base64,AQID" }
        expect((path === "/responses" ? body.input : body.messages)[0].content).toEqual(
          path === "/responses"
            ? [
                { type: "input_text", text: "See" },
                { type: "input_image", image_url: png, detail: "auto" },
                { type: "input_image", image_url: "https://example.com/a.jpg", detail: "auto" },
                { type: "input_file", ...pdf },
                { type: "input_text", text: "note.txt:\nnaïve" }
              ]
            : [
                { type: "text", text: "See" },
                { type: "image_url", image_url: { url: png } },
                { type: "image_url", image_url: { url: "https://example.com/a.jpg" } },
                { type: "file", file: pdf },
                { type: "text", text: "note.txt:\nnaïve" }
              ]
        )
      })
    )

    it.effect("refuses a file that the interface cannot carry before anything is sent", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        const prompt = Prompt.fromMessages([
          Prompt.userMessage({ content: [file("video/mp4", Uint8Array.of(1))] })
        ])
        const { error } = yield* failing(requestOf({ prompt }))
        expect(error).toMatchObject({ reason: "Rejected", retryable: false })
        expect(requests).toHaveLength(0)
      })
    )
  })
}
