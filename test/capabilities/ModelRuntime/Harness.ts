/** A provider stub, a runtime that speaks to it, and what the suites of all interfaces ask it. */
import * as Prompt from "@effect/ai/Prompt"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { exchange } from "../../../src/app/Providers.ts"
import type { StreamingPost } from "../../../src/capabilities/StreamingPost.ts"
import { type ModelPart, type ModelRequest, ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import * as AnthropicMessages from "../../../src/capabilities/ModelRuntime/AnthropicMessages.ts"
import * as ChatCompletions from "../../../src/capabilities/ModelRuntime/ChatCompletions.ts"
import type { ProviderOptions } from "../../../src/capabilities/ModelRuntime/ProviderStream.ts"
import * as Responses from "../../../src/capabilities/ModelRuntime/Responses.ts"
import * as ModelStub from "../../servers/ModelStub.ts"

export class Stub extends Context.Tag("test/Stub")<Stub, ModelStub.ModelStub>() {}

export const key = "sk-canary-0123456789"

export const runtimeOf = (
  make: (options: ProviderOptions) => Layer.Layer<ModelRuntime, never, StreamingPost>,
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

export const environment = Layer.merge(Layer.scoped(Stub, ModelStub.make), exchange)

export const user = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

export const requestOf = (request: Partial<ModelRequest> = {}): ModelRequest => ({
  model: null,
  prompt: Prompt.fromMessages([Prompt.systemMessage({ content: "Be brief." }), user("Hello?")]),
  tools: [],
  question: "Hello?",
  passages: [],
  ...request
})

export const collect = (request: ModelRequest = requestOf()) =>
  Effect.gen(function* () {
    const runtime = yield* ModelRuntime
    return Chunk.toReadonlyArray(yield* Stream.runCollect(runtime.reply(request)))
  })

/** What came before the failure, and the failure. */
export const failing = (request: ModelRequest = requestOf()) =>
  Effect.gen(function* () {
    const runtime = yield* ModelRuntime
    const parts: Array<ModelPart> = []
    const outcome = yield* Effect.either(
      Stream.runForEach(runtime.reply(request), (part) => Effect.sync(() => void parts.push(part)))
    )
    if (Either.isRight(outcome)) throw new Error("The reply ended well")
    return { parts, error: outcome.left }
  })

export const textOf = (parts: ReadonlyArray<ModelPart>) =>
  parts.map((part) => (part._tag === "TextDelta" ? part.delta : "")).join("")

export const weather: ModelRequest["tools"][number] = {
  name: "weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

export const suites = [
  ["ChatCompletions", ChatCompletions.layer, "/chat/completions"],
  ["Responses", Responses.layer, "/responses"],
  ["AnthropicMessages", AnthropicMessages.layer, "/messages"]
] as const
