/** What a model object of the AI SDK is asked, and what is read of its stream. The whole of it: test/library/AiSdkModel.test.ts. */
import * as Prompt from "@effect/ai/Prompt"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import { layerAiSdk } from "../../../src/capabilities/ModelRuntime/AiSdk.ts"
import type { AiSdkCall, AiSdkModel } from "../../../src/domain/chat/AiSdkModel.ts"
import { collect, requestOf, weather } from "./Harness.ts"

const streamed = (parts: ReadonlyArray<unknown>) =>
  new ReadableStream<unknown>({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })

const delta = (text: string) => ({ type: "text-delta", id: "1", delta: text })

/** A model that says `parts`, and the calls that it gets. */
const saying = (...parts: ReadonlyArray<unknown>) => {
  const calls: Array<AiSdkCall> = []
  const model: AiSdkModel = {
    specificationVersion: "v3",
    provider: "hand",
    modelId: "made",
    doStream: (call) => {
      calls.push(call)
      return Promise.resolve({ stream: streamed(parts) })
    }
  }
  return { calls, layer: layerAiSdk(model) }
}

const finish = {
  type: "finish",
  finishReason: { unified: "length", raw: "max_tokens" },
  usage: { inputTokens: { total: 30, cacheRead: 10 }, outputTokens: { total: 2 } }
}

describe("A model object of the AI SDK", () => {
  it.effect("that finishes by an error has failed, whichever version it is of", () =>
    Effect.gen(function* () {
      for (const finishReason of ["error", { unified: "error", raw: "MALFORMED_FUNCTION_CALL" }]) {
        const { layer } = saying(delta("Half"), { ...finish, finishReason })
        const error = yield* Effect.flip(Effect.provide(collect(), layer))
        expect(error).toMatchObject({ reason: "Truncated", retryable: false })
      }
    })
  )

  it.effect("is asked with images, calls of tools and what those have answered", () =>
    Effect.gen(function* () {
      const { calls, layer } = saying(finish)
      const picture = new Uint8Array([137, 80, 78, 71])
      const prompt = Prompt.fromMessages([
        Prompt.systemMessage({ content: "Be brief." }),
        Prompt.userMessage({
          content: [
            Prompt.textPart({ text: "What is this?" }),
            Prompt.filePart({ mediaType: "image/png", fileName: "a.png", data: picture })
          ]
        }),
        Prompt.assistantMessage({
          content: [
            Prompt.textPart({ text: "Let me see." }),
            Prompt.toolCallPart({
              id: "c1",
              name: "weather",
              params: { city: "Bonn" },
              providerExecuted: false
            })
          ]
        }),
        Prompt.toolMessage({
          content: [
            Prompt.toolResultPart({
              id: "c1",
              name: "weather",
              isFailure: true,
              result: { error: "no" },
              providerExecuted: false
            })
          ]
        })
      ])
      yield* Effect.provide(collect(requestOf({ prompt, tools: [weather] })), layer)
      expect(calls[0]?.prompt).toEqual([
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "file", data: picture, mediaType: "image/png", filename: "a.png" }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Let me see." },
            { type: "tool-call", toolCallId: "c1", toolName: "weather", input: { city: "Bonn" } }
          ]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "c1",
              toolName: "weather",
              output: { type: "error-text", value: '{"error":"no"}' }
            }
          ]
        }
      ])
      expect(calls[0]?.tools).toEqual([
        {
          type: "function",
          name: "weather",
          description: weather.description,
          inputSchema: weather.parameters
        }
      ])
    })
  )

  it.effect("tells its text, its calls, its reason and its tokens, and nothing after its finish", () =>
    Effect.gen(function* () {
      const { layer } = saying(
        { type: "stream-start", warnings: [] },
        { type: "reasoning-delta", id: "r", delta: "Hm." },
        delta("Hel"),
        delta("lo."),
        finish,
        delta("More.")
      )
      expect(yield* Effect.provide(collect(), layer)).toEqual([
        { _tag: "TextDelta", delta: "Hel" },
        { _tag: "TextDelta", delta: "lo." },
        { _tag: "Finish", reason: "length", inputTokens: 30, cachedInputTokens: 10, outputTokens: 2 }
      ])
      const calling = saying(
        { type: "tool-call", toolCallId: "c1", toolName: "weather", input: '{"city":"Bonn"}' },
        { type: "tool-call", toolCallId: "c2", toolName: "search", input: "{}", providerExecuted: true },
        { ...finish, finishReason: "other", usage: {} }
      )
      expect(yield* Effect.provide(collect(), calling.layer)).toMatchObject([
        { _tag: "ToolCall", id: "c1", name: "weather", input: { city: "Bonn" } },
        { _tag: "Finish", reason: "tool-calls", isEstimated: true }
      ])
    })
  )

  it.live("is aborted when whoever reads it leaves", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<AbortSignal>()
      const model: AiSdkModel = {
        specificationVersion: "v3",
        provider: "hand",
        modelId: "made",
        doStream: ({ abortSignal }) => {
          Deferred.unsafeDone(asked, Effect.succeed(abortSignal))
          return Promise.resolve({
            stream: new ReadableStream({ cancel: () => new Promise(() => undefined) })
          })
        }
      }
      const reading = Effect.flatMap(ModelRuntime, (runtime) => Stream.runDrain(runtime.reply(requestOf())))
      const fiber = yield* Effect.fork(Effect.provide(reading, layerAiSdk(model)))
      const signal = yield* Deferred.await(asked)
      expect(signal.aborted).toBe(false)
      yield* Fiber.interrupt(fiber)
      expect(signal.aborted).toBe(true)
    })
  )
})
