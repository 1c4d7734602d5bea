/** What models think: told apart from the reply, counted, and brought back with the calls of tools that followed it. */
import * as Prompt from "@effect/ai/Prompt"
import { describe, expect, it, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerAiSdk } from "../../../src/capabilities/ModelRuntime/AiSdk.ts"
import type { ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { AiSdkCall, AiSdkModel } from "../../../src/domain/chat/AiSdkModel.ts"
import { collect, environment, requestOf, runtimeOf, Stub, suites, textOf, user, weather } from "./Harness.ts"

const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const chat = (delta: unknown, finish: string | null = null) =>
  frame({ choices: [{ index: 0, delta, finish_reason: finish }] })
const usage = { prompt_tokens: 9, completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 21 } }
const chatCall = { index: 0, id: "call_1", function: { name: "weather", arguments: '{"city":"Ulm"}' } }

const chatFrames = (field: string) => [
  chat({ [field]: "Hm, \u{1f914}".slice(0, -1) }),
  chat({ [field]: "\u{1f914}".slice(1) }),
  chat({ content: "Let me look." }),
  chat({ tool_calls: [chatCall] }, "tool_calls"),
  frame({ choices: [], usage }),
  "data: [DONE]\n\n"
]

const block = (index: number, content_block: unknown) =>
  frame({ type: "content_block_start", index, content_block })
const delta = (index: number, value: unknown) => frame({ type: "content_block_delta", index, delta: value })
const stop = (index: number) => frame({ type: "content_block_stop", index })

const anthropicFrames = [
  frame({ type: "message_start", message: { usage: { input_tokens: 9 } } }),
  block(0, { type: "thinking", thinking: "", signature: "" }),
  delta(0, { type: "thinking_delta", thinking: "Hm, " }),
  delta(0, { type: "thinking_delta", thinking: "\u{1f914}" }),
  delta(0, { type: "signature_delta", signature: "c2ln" }),
  stop(0),
  block(1, { type: "redacted_thinking", data: "ZW5j" }),
  stop(1),
  block(2, { type: "text", text: "" }),
  delta(2, { type: "text_delta", text: "Let me look." }),
  stop(2),
  block(3, { type: "tool_use", id: "call_1", name: "weather", input: {} }),
  delta(3, { type: "input_json_delta", partial_json: '{"city":"Ulm"}' }),
  stop(3),
  frame({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 30 } }),
  frame({ type: "message_stop" })
]

const responsesFrames = [
  frame({ type: "response.reasoning_summary_part.added" }),
  frame({ type: "response.reasoning_summary_text.delta", delta: "Hm, " }),
  frame({ type: "response.reasoning_text.delta", delta: "\u{1f914}" }),
  frame({ type: "response.output_text.delta", delta: "Let me look." }),
  frame({
    type: "response.completed",
    response: {
      output: [{ type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Ulm"}' }],
      usage: { input_tokens: 9, output_tokens: 30, output_tokens_details: { reasoning_tokens: 21 } }
    }
  })
]

const thoughtOf = (parts: ReadonlyArray<ModelPart>) =>
  parts.map((part) => (part._tag === "ReasoningDelta" ? part.delta : "")).join("")

/** The round after `parts`, as the turn asks it. */
const following = (parts: ReadonlyArray<ModelPart>) => {
  const thoughts = parts.flatMap((part) =>
    part._tag === "Reasoning" ? [Prompt.reasoningPart({ text: part.text, options: part.options })] : []
  )
  const made = parts.find((part) => part._tag === "ToolCall")
  const call = Prompt.toolCallPart({
    id: "call_1",
    name: "weather",
    params: { city: "Ulm" },
    providerExecuted: false,
    ...(made?.options === undefined ? {} : { options: made.options })
  })
  const result = Prompt.toolResultPart({
    id: "call_1",
    name: "weather",
    isFailure: false,
    result: "Rain",
    providerExecuted: false
  })
  return requestOf({
    tools: [weather],
    prompt: Prompt.fromMessages([
      user("Hello?"),
      Prompt.assistantMessage({ content: [...thoughts, Prompt.textPart({ text: "Let me look." }), call] }),
      Prompt.toolMessage({ content: [result] })
    ])
  })
}

const cases = [
  {
    name: "Chat completions with reasoning_content",
    suite: suites[0],
    frames: chatFrames("reasoning_content"),
    tokens: 21,
    back: { path: ["messages", 1, "reasoning_content"], value: "Hm, \u{1f914}" }
  },
  {
    name: "Chat completions with reasoning",
    suite: suites[0],
    frames: chatFrames("reasoning"),
    tokens: 21,
    back: { path: ["messages", 1, "reasoning"], value: "Hm, \u{1f914}" }
  },
  { name: "Responses", suite: suites[1], frames: responsesFrames, tokens: 21, back: null },
  {
    name: "Anthropic messages",
    suite: suites[2],
    frames: anthropicFrames,
    tokens: undefined,
    back: {
      path: ["messages", 1, "content"],
      value: [
        { type: "thinking", thinking: "Hm, \u{1f914}", signature: "c2ln" },
        { type: "redacted_thinking", data: "ZW5j" },
        { type: "text", text: "Let me look." },
        { type: "tool_use", id: "call_1", name: "weather", input: { city: "Ulm" } }
      ]
    }
  }
] as const

for (const { back, frames, name, suite, tokens } of cases) {
  layer(environment)(`Reasoning: ${name}`, (it) => {
    it.effect("is no part of the reply, is counted, and goes back with the call", () =>
      Effect.gen(function* () {
        const stub = yield* Stub
        stub.script.push({ raw: frames }, { text: "Rain." })
        const parts = yield* collect(requestOf({ tools: [weather] }))
        expect(thoughtOf(parts)).toBe("Hm, \u{1f914}")
        expect(textOf(parts)).toBe("Let me look.")
        expect(parts.filter(({ _tag }) => _tag === "ToolCall")).toHaveLength(1)
        const finish = parts.find(({ _tag }) => _tag === "Finish")
        expect(finish).toMatchObject({ reason: "tool-calls", outputTokens: 30 })
        if (tokens !== undefined) expect(finish).toMatchObject({ reasoningTokens: tokens })
        yield* collect(following(parts))
        const body: unknown = stub.requests.at(-1)?.body
        if (back === null) expect(JSON.stringify(body)).not.toContain("Hm, ")
        else expect(body).toHaveProperty([...back.path], back.value)
      }).pipe(Effect.provide(runtimeOf(suite[1])))
    )
  })
}

const signedCall = { ...chatCall, extra_content: { google: { thought_signature: "c2ln" } } }

layer(environment)("What a provider adds to a call", (it) => {
  const [, chatCompletions] = suites[0]

  it.effect("goes back with the call, which the provider refuses otherwise", () =>
    Effect.gen(function* () {
      const stub = yield* Stub
      const rest = { index: 0, function: { arguments: " " } }
      stub.script.push(
        { raw: [chat({ tool_calls: [signedCall] }), chat({ tool_calls: [rest] }, "tool_calls")] },
        { text: "Rain." }
      )
      yield* collect(following(yield* collect(requestOf({ tools: [weather] }))))
      expect(stub.requests.at(-1)?.body.messages[1].tool_calls).toEqual([
        {
          id: "call_1",
          type: "function",
          function: { name: "weather", arguments: '{"city":"Ulm"}' },
          extra_content: signedCall.extra_content
        }
      ])
    }).pipe(Effect.provide(runtimeOf(chatCompletions)))
  )

  it.effect("is not sent to another provider", () =>
    Effect.gen(function* () {
      const stub = yield* Stub
      stub.script.push({ raw: [chat({ tool_calls: [signedCall] }, "tool_calls")] })
      const parts = yield* Effect.provide(collect(), runtimeOf(chatCompletions, { baseUrl: `${stub.url}/` }))
      for (const [_, make] of suites) {
        yield* Effect.provide(collect(following(parts)), runtimeOf(make))
        expect(JSON.stringify(stub.requests.at(-1)?.body)).not.toContain("c2ln")
      }
    })
  )
})

layer(environment)("Reasoning of another provider", (it) => {
  it.effect("is not sent to this one", () =>
    Effect.gen(function* () {
      const stub = yield* Stub
      const options = [{ anthropic: { signature: "c2ln" } }, { aiSdk: {} }, {}]
      for (const [_, make] of suites) {
        const parts = options.map((one): ModelPart => ({ _tag: "Reasoning", text: "Mine.", options: one }))
        const foreign = parts.slice(make === suites[2][1] ? 1 : 0)
        yield* Effect.provide(collect(following(foreign)), runtimeOf(make))
        expect(JSON.stringify(stub.requests.at(-1)?.body)).not.toContain("Mine.")
      }
    })
  )
})

describe("Reasoning of a model object of the AI SDK", () => {
  it.effect("is no part of the reply, is counted, and goes back as it came", () =>
    Effect.gen(function* () {
      const calls: Array<AiSdkCall> = []
      const signature = { anthropic: { signature: "c2ln" } }
      const told = [
        { type: "reasoning-start", id: "r1" },
        { type: "reasoning-delta", id: "r1", delta: "Hm, " },
        { type: "reasoning-delta", id: "r1", delta: "so." },
        { type: "reasoning-delta", id: "r1", delta: "", providerMetadata: signature },
        { type: "reasoning-end", id: "r1" },
        { type: "text-delta", id: "1", delta: "Let me look." },
        {
          type: "tool-call",
          toolCallId: "call_1",
          toolName: "weather",
          input: '{"city":"Ulm"}',
          providerMetadata: signature
        },
        {
          type: "finish",
          finishReason: { unified: "tool-calls" },
          usage: { inputTokens: { total: 9 }, outputTokens: { total: 30, reasoning: 21 } }
        }
      ]
      const model: AiSdkModel = {
        specificationVersion: "v3",
        provider: "hand",
        modelId: "made",
        doStream: (call) => {
          calls.push(call)
          return Promise.resolve({ stream: ReadableStream.from(told) })
        }
      }
      yield* Effect.gen(function* () {
        const parts = yield* collect(requestOf({ tools: [weather] }))
        expect([thoughtOf(parts), textOf(parts)]).toEqual(["Hm, so.", "Let me look."])
        expect(parts.at(-1)).toMatchObject({ _tag: "Finish", reasoningTokens: 21 })
        yield* collect(following(parts))
        expect(calls.at(-1)?.prompt[1]?.content).toEqual([
          { type: "reasoning", text: "Hm, so.", providerOptions: signature },
          { type: "text", text: "Let me look." },
          {
            type: "tool-call",
            toolCallId: "call_1",
            toolName: "weather",
            input: { city: "Ulm" },
            providerOptions: signature
          }
        ])
      }).pipe(Effect.provide(layerAiSdk(model)))
    })
  )
})
