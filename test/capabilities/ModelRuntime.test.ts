import * as Prompt from "@effect/ai/Prompt"
import * as HttpClient from "@effect/platform/HttpClient"
import { expect, it, layer } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { describe } from "vitest"
import {
  ModelError,
  type ModelPart,
  type ModelRequest,
  ModelRuntime
} from "../../src/capabilities/ModelRuntime.ts"
import * as ChatCompletions from "../../src/capabilities/ModelRuntime/ChatCompletions.ts"
import * as ProviderHttp from "../../src/capabilities/ModelRuntime/ProviderHttp.ts"
import type { ProviderOptions } from "../../src/capabilities/ModelRuntime/ProviderStream.ts"
import * as Responses from "../../src/capabilities/ModelRuntime/Responses.ts"
import * as ModelStub from "../ModelStub.ts"

class Stub extends Context.Tag("test/Stub")<Stub, ModelStub.ModelStub>() {}

const key = "sk-canary-0123456789"

const runtimeOf = (
  make: (options: ProviderOptions) => Layer.Layer<ModelRuntime, never, HttpClient.HttpClient>,
  options: Partial<ProviderOptions> = {}
) =>
  Layer.unwrapEffect(
    Effect.map(Stub, ({ url }) =>
      make({
        apiKey: Redacted.make(key),
        baseUrl: url,
        defaultModel: "stub-model",
        responseTimeout: "10 seconds",
        ...options
      })
    )
  )

const environment = Layer.merge(Layer.scoped(Stub, ModelStub.make), ProviderHttp.layer)

const user = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

const requestOf = (request: Partial<ModelRequest> = {}): ModelRequest => ({
  model: null,
  prompt: Prompt.fromMessages([Prompt.systemMessage({ content: "Be brief." }), user("Hello?")]),
  tools: [],
  question: "Hello?",
  passages: [],
  ...request
})

const collect = (request: ModelRequest = requestOf()) =>
  Effect.flatMap(ModelRuntime, (runtime) =>
    Effect.map(Stream.runCollect(runtime.stream(request)), Chunk.toReadonlyArray)
  )

/** What came before the failure, and the failure. */
const failing = (request: ModelRequest = requestOf()) =>
  Effect.gen(function* () {
    const runtime = yield* ModelRuntime
    const parts: Array<ModelPart> = []
    const outcome = yield* Effect.either(
      Stream.runForEach(runtime.stream(request), (part) => Effect.sync(() => parts.push(part)))
    )
    if (Either.isRight(outcome)) throw new Error("The stream ended well")
    return { parts, error: outcome.left }
  })

const textOf = (parts: ReadonlyArray<ModelPart>) =>
  parts.map((part) => (part._tag === "TextDelta" ? part.delta : "")).join("")

const weather: ModelRequest["tools"][number] = {
  name: "weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

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

const suites = [
  ["ChatCompletions", ChatCompletions.layer, "/chat/completions"],
  ["Responses", Responses.layer, "/responses"]
] as const

for (const [name, make, path] of suites) {
  layer(Layer.provideMerge(runtimeOf(make), environment), { excludeTestServices: true })(name, (it) => {
    const stub = Effect.tap(Stub, (found) => Effect.sync(found.reset))

    it.effect("streams the text token by token and ends with a finish and the usage", () =>
      Effect.gen(function* () {
        const { script, requests } = yield* stub
        script.push({ text: "Grüße, 世界 👋!", usage: { input: 11, output: 4 } })
        const parts = yield* collect()
        expect(parts.slice(0, -1).map(({ _tag }) => _tag)).toEqual(["TextDelta", "TextDelta", "TextDelta"])
        expect(textOf(parts)).toBe("Grüße, 世界 👋!")
        expect(parts.at(-1)).toEqual({ _tag: "Finish", reason: "stop", inputTokens: 11, outputTokens: 4 })
        const [sent] = requests
        expect(sent?.path).toBe(path)
        expect(sent?.headers.authorization).toBe(`Bearer ${key}`)
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

    it.effect("estimates the usage when the provider sends none", () =>
      Effect.gen(function* () {
        const { script } = yield* stub
        script.push({ text: "One two three four.", usage: null })
        const finish = (yield* collect()).at(-1)
        expect(finish).toEqual({ _tag: "Finish", reason: "stop", inputTokens: 5, outputTokens: 5 })
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
          path === "/responses"
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
          path === "/responses"
            ? { type: "response.output_text.delta", delta }
            : { choices: [{ delta: { content: delta } }] }
        const finish =
          path === "/responses"
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
        if (path === "/responses") {
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

    const statuses = [
      [400, "Rejected", false],
      [401, "Rejected", false],
      [404, "Rejected", false],
      [429, "RateLimited", true],
      [500, "Unreachable", true],
      [503, "Unreachable", true]
    ] as const
    for (const [status, reason, retryable] of statuses) {
      it.effect(`status ${status} is ${reason}${retryable ? ", and may be sent again" : ""}`, () =>
        Effect.gen(function* () {
          const { script } = yield* stub
          script.push({ status })
          const { error } = yield* failing()
          expect(error).toMatchObject({ reason, retryable })
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

    it.effect("interruption aborts the provider's request", () =>
      Effect.gen(function* () {
        const { script, request } = yield* stub
        const runtime = yield* ModelRuntime
        script.push({ text: "one two three four", breaks: "hang" })
        const begun = yield* Deferred.make<void>()
        const fiber = yield* Effect.fork(
          Stream.runForEach(runtime.stream(requestOf()), () => Deferred.succeed(begun, undefined))
        )
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        const { over } = yield* Effect.promise(() => request(0))
        expect(yield* Effect.promise(() => over)).toBe(true)
      })
    )

    it.effect("interruption before the first byte aborts the provider's request", () =>
      Effect.gen(function* () {
        const { script, request } = yield* stub
        script.push({ silent: "hang" })
        const fiber = yield* Effect.fork(collect())
        const { over } = yield* Effect.promise(() => request(0))
        yield* Fiber.interrupt(fiber)
        expect(yield* Effect.promise(() => over)).toBe(true)
      })
    )

    it.effect("a reader that has enough aborts the provider's request", () =>
      Effect.gen(function* () {
        const { script, request } = yield* stub
        const runtime = yield* ModelRuntime
        script.push({ text: "one two three four", breaks: "hang" })
        const first = yield* Stream.runHead(runtime.stream(requestOf()))
        expect(Option.getOrUndefined(first)).toEqual({ _tag: "TextDelta", delta: "one" })
        const { over } = yield* Effect.promise(() => request(0))
        expect(yield* Effect.promise(() => over)).toBe(true)
      })
    )

    it.effect("a finished answer leaves its connection for the next", () =>
      Effect.gen(function* () {
        const { requests } = yield* stub
        for (let count = 0; count < 6; count++) yield* collect()
        expect(requests.some((sent) => sent.aborted())).toBe(false)
        // The pool may open a second one for a request that comes before the first connection is quite idle.
        expect(new Set(requests.map(({ port }) => port)).size).toBeLessThanOrEqual(2)
      })
    )
  })

  const hasty = runtimeOf(make, { responseTimeout: "150 millis", idleTimeout: "150 millis" })
  layer(Layer.provideMerge(hasty, environment), { excludeTestServices: true })(`${name}, deadlines`, (it) => {
    it.effect("no first byte in time is a failure, and aborts the request", () =>
      Effect.gen(function* () {
        const { script, request } = yield* Stub
        script.push({ silent: "hang" })
        expect((yield* failing()).error).toMatchObject({ reason: "TimedOut", retryable: false })
        const { over } = yield* Effect.promise(() => request(0))
        expect(yield* Effect.promise(() => over)).toBe(true)
      })
    )

    it.effect("silence in the middle is a failure after the text that came", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({ text: "one two three four", breaks: "hang" })
        const { parts, error } = yield* failing()
        expect(textOf(parts)).toBe("one two")
        expect(error).toMatchObject({ reason: "TimedOut", retryable: false })
      })
    )

    it.effect("an answer may take longer than either deadline as long as it goes on", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({ text: "a b c d e f g h", gap: 40 })
        expect(textOf(yield* collect())).toBe("a b c d e f g h")
      })
    )
  })
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
        }).pipe(Layer.provide(ProviderHttp.layer))
      )
    )
  )
})

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

    it.effect("an event over the limit is a failure, not a buffer without end", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({ raw: Array.from({ length: 10 }, () => "x".repeat(1024 * 1024)) })
        expect((yield* failing()).error.reason).toBe("Malformed")
      })
    )
  }
)
