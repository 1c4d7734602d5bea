/** The configured model providers, and the selection of one by model name. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ModelRuntime } from "../capabilities/ModelRuntime.ts"
import * as AnthropicMessages from "../capabilities/ModelRuntime/AnthropicMessages.ts"
import * as ChatCompletions from "../capabilities/ModelRuntime/ChatCompletions.ts"
import { measured } from "../capabilities/ModelRuntime/Measured.ts"
import { priced } from "../capabilities/ModelRuntime/prices/Priced.ts"
import type { ProviderApi } from "../capabilities/ModelRuntime/ProviderApi.ts"
import * as ProviderHttp from "../capabilities/ModelRuntime/ProviderHttp.ts"
import * as Responses from "../capabilities/ModelRuntime/Responses.ts"
import { routed } from "../capabilities/ModelRuntime/Routed.ts"
import * as StreamingPostUndici from "../capabilities/StreamingPost/Undici.ts"
import type { ModelProvider, Settings } from "./config/Settings.ts"

export const exchange = StreamingPostUndici.layer.pipe(Layer.provide(ProviderHttp.layerDispatcher))

/** The client for each kind of provider API. */
const layers: Record<ProviderApi, typeof ChatCompletions.layer> = {
  responses: Responses.layer,
  "chat-completions": ChatCompletions.layer,
  azure: ChatCompletions.layer,
  anthropic: AnthropicMessages.layer
}

/** The runtime of one provider. */
export const runtimeLayer = (
  { api, apiKey, apiVersion, baseUrl, contextWindow }: ModelProvider,
  defaultModel: string
) =>
  layers[api]({
    api,
    apiKey,
    apiVersion,
    baseUrl,
    contextWindow,
    defaultModel
  })

/** The runtime for chats: the only provider, or all providers by name. */
export const chatRuntime = (
  model: NonNullable<Settings["model"]>,
  {
    fallbackModels: fallbacks,
    modelPrices,
    providers
  }: Pick<Settings, "fallbackModels" | "modelPrices" | "providers">
) => {
  const { chatModel: defaultModel, provider: base } = model
  return Layer.scoped(
    ModelRuntime,
    Effect.gen(function* () {
      const buildRuntime = (name: string, provider: ModelProvider) =>
        Effect.map(Layer.build(runtimeLayer(provider, defaultModel)), (context) =>
          measured(name, priced(name, provider.baseUrl, modelPrices, Context.get(context, ModelRuntime)))
        )
      const defaultRuntime = yield* buildRuntime(base, model)
      if (providers.size === 0) return defaultRuntime
      const others = yield* Effect.forEach(providers, ([name, provider]) =>
        Effect.map(buildRuntime(name, provider), (runtime) => [name, runtime] as const)
      )
      const all = new Map([...others, [base, defaultRuntime] as const])
      return routed({ providers: all, base, defaultModel, fallbacks }, defaultRuntime)
    })
  )
}
