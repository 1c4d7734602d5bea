/** Checks of `spoke doctor` for language models: each configured one is asked for a word, as a turn would ask it. */
import * as Prompt from "@effect/ai/Prompt"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { keyHeaders, versioned } from "../../../capabilities/ModelRuntime/ProviderApi.ts"
import { readName } from "../../../capabilities/ModelRuntime/Routed.ts"
import { type ModelError, ModelRuntime, problemOf, wholeReply } from "../../../capabilities/ModelRuntime.ts"
import type { Settings } from "../../config/Config.ts"
import type { ModelProvider } from "../../config/Settings.ts"
import { runtimeLayer } from "../../Providers.ts"
import { answerTimeout, ok, problem } from "./Finding.ts"

/** A local server loads a model before its first answer. */
const modelTimeout = Duration.seconds(30)
/** Maximum length of the answer that is read, in UTF-16 units. */
const maxAnswerLength = 100

/** A provider with the names of the variables that configure it. */
interface Checked {
  readonly check: string
  readonly provider: ModelProvider
  /** Names of its models in the configuration, without the provider's name. */
  readonly models: ReadonlyArray<string>
  readonly keyVariable: string
  readonly addressVariable: string
}

const remedyFor = (error: ModelError, { addressVariable, keyVariable }: Checked): string => {
  switch (problemOf(error)) {
    case "key_refused":
      return `the provider refuses the key: see ${keyVariable}`
    case "quota_spent":
      return "the budget at the provider is spent"
    case "model_unknown":
      return `the provider does not know the model, or its address is wrong: see SPOKE_CHAT_MODEL, SPOKE_FALLBACK_MODELS and ${addressVariable}, which usually ends in /v1`
    case "rate_limited":
      return error.message
    default:
      return `${error.message}: see ${addressVariable}`
  }
}

const ask = (checked: Checked, model: string) =>
  Effect.flatMap(ModelRuntime, (runtime) => {
    const message = Prompt.userMessage({ content: [Prompt.textPart({ text: "Answer with: OK" })] })
    const prompt = Prompt.fromMessages([message])
    return wholeReply(
      runtime.reply({ model, prompt, tools: [], question: "", passages: [] }),
      maxAnswerLength
    )
  }).pipe(
    Effect.as<ReadonlyArray<string>>([]),
    Effect.catchAll((error) => Effect.succeed([`${model}: ${remedyFor(error, checked)}`])),
    Effect.timeoutTo({
      duration: modelTimeout,
      onSuccess: (problems) => problems,
      onTimeout: () => [`${model}: it does not answer within ${Duration.format(modelTimeout)}`]
    }),
    Effect.provide(runtimeLayer(checked.provider, model))
  )

/** Without the name of a model only the provider's list of models can be requested. Some have none. */
const reach = ({ addressVariable, keyVariable, provider }: Checked) => {
  const { api, apiKey, apiVersion, baseUrl } = provider
  const request = HttpClientRequest.get(versioned(`${baseUrl}/models`, apiVersion))
  return HttpClient.execute(HttpClientRequest.setHeaders(request, keyHeaders(api, apiKey))).pipe(
    Effect.map(({ status }): ReadonlyArray<string> => {
      if (status === 401 || status === 403) return [`the provider refuses the key: see ${keyVariable}`]
      return status >= 500 ? [`the provider answers ${status}`] : []
    }),
    Effect.timeout(answerTimeout),
    Effect.orElseSucceed(() => [`the provider does not answer: see ${addressVariable}`])
  )
}

const checkProvider = Effect.fnUntraced(function* (checked: Checked) {
  const { check, models, provider } = checked
  const problems =
    models.length === 0
      ? yield* reach(checked)
      : (yield* Effect.forEach(models, (model) => ask(checked, model))).flat()
  if (problems.length > 0) return problems.map((message) => problem(check, message))
  return [
    ok(
      check,
      `${models.length === 0 ? "answers" : models.join(", ")} at ${provider.baseUrl} (${provider.api})`
    )
  ]
})

/** Asks every configured model. */
export const checkModels = ({ fallbackModels, model, providers }: Settings) => {
  if (model === null)
    return Effect.succeed([
      ok("model", "none: replies are extracts. Set OPENAI_API_KEY to have them written.")
    ])
  const { chatModel, provider: base } = model
  const isListed = providers.has(base)
  // With one provider alone a slash is part of the model's name.
  const all: ReadonlyMap<string, ModelProvider> =
    providers.size === 0 ? providers : new Map([[base, model], ...providers])
  const configured = [...new Set([chatModel, ...fallbackModels])].map((name) => readName(name, all, base))
  const checked = [...new Map([[base, model], ...providers])].map(([name, provider]): Checked => ({
    check: name === base ? "model" : `model ${name}`,
    provider,
    models: configured.filter((one) => one.provider === name).map((one) => one.model),
    keyVariable: name === base && !isListed ? "OPENAI_API_KEY" : "its apiKeyEnv in SPOKE_PROVIDERS",
    addressVariable: name === base && !isListed ? "OPENAI_BASE_URL" : "its baseUrl in SPOKE_PROVIDERS"
  }))
  return Effect.map(Effect.forEach(checked, checkProvider, { concurrency: 4 }), (findings) => findings.flat())
}
