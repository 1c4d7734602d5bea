/** Model providers in addition to the default one. Their keys are in separate variables, which the settings name. */
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/Optional.ts"
import { baseUrl, parsed } from "./ConfigValues.ts"
import type { ModelProvider, Settings } from "./Settings.ts"

const defaultContextWindow = 128_000
/** The default provider. */
export const defaultUrl = "https://api.openai.com/v1"

const Name = Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9-]{0,31}$/u))

const Fields = Schema.Struct({
  /** For example `http://127.0.0.1:11434/v1`. */
  baseUrl,
  /** Name of the variable with the key; absent for a provider without one. */
  apiKeyEnv: optional(Schema.String.pipe(Schema.pattern(/^[A-Z][A-Z0-9_]{0,63}$/u))),
  api: optional(Schema.Literal("responses", "chat-completions", "azure", "anthropic")),
  /** Required for `azure`, and only allowed there. */
  apiVersion: optional(Schema.String.pipe(Schema.pattern(/^[\w.-]{1,64}$/u))),
  contextWindow: optional(Schema.Int.pipe(Schema.between(1_000, 10_000_000)))
})

const Provider = Fields.pipe(
  Schema.filter(({ api, apiVersion }) => (api === "azure") === (apiVersion !== undefined))
)

const Table = Schema.parseJson(Schema.Record({ key: Name, value: Provider }))

type ProviderTable = ReadonlyMap<string, typeof Provider.Type>

export const Providers = parsed(
  "JSON from names (a-z, 0-9 and -) to objects of baseUrl, apiKeyEnv, api, apiVersion (with azure alone) and contextWindow",
  (text) =>
    Option.map(
      Schema.decodeOption(Table, { onExcessProperty: "error" })(text),
      (table): ProviderTable => new Map(Object.entries(table))
    )
)

export const Models = parsed("models separated by commas", (text) => {
  const models = text.split(",").map((model) => model.trim())
  return models.every((model) => model !== "") ? Option.some(models) : Option.none()
})

type Environment = Readonly<Record<string, string | undefined>>

export const providersOf = (
  given: ProviderTable = new Map(),
  environment: Environment
): ReadonlyMap<string, ModelProvider> =>
  new Map(
    [...given].map(([name, { api = "chat-completions", apiKeyEnv, apiVersion, baseUrl, contextWindow }]) => [
      name,
      {
        // Without a key a placeholder is sent, because every client sends one.
        apiKey: Redacted.make((apiKeyEnv === undefined ? undefined : environment[apiKeyEnv]) ?? "none"),
        baseUrl,
        api,
        apiVersion,
        contextWindow: contextWindow ?? defaultContextWindow
      }
    ])
  )

/** Names of the variables with the providers' keys. */
export const keyVariables = (given: ProviderTable = new Map()): ReadonlyArray<string> =>
  [...given.values()].flatMap(({ apiKeyEnv }) => (apiKeyEnv === undefined ? [] : [apiKeyEnv]))

/** The provider that `chatModel` names, when no default provider is configured. */
const defaultModelOf = (
  chatModel: string | undefined,
  providers: ReadonlyMap<string, ModelProvider>
): Settings["model"] => {
  const name = chatModel?.split("/", 1)[0] ?? ""
  const provider = providers.get(name)
  return provider === undefined || chatModel === undefined ? null : { ...provider, provider: name, chatModel }
}

interface Variables {
  readonly SPOKE_PROVIDERS?: ProviderTable
  readonly SPOKE_FALLBACK_MODELS?: ReadonlyArray<string>
  readonly SPOKE_CHAT_MODEL?: string
  readonly SPOKE_CONTEXT_WINDOW?: number
  readonly SPOKE_OPENAI_API?: "responses" | "chat-completions"
  readonly OPENAI_API_KEY?: Redacted.Redacted
  readonly OPENAI_BASE_URL?: string
}

/** The variables that {@link problemsOf} compares. */
export const modelVariables = [
  "SPOKE_PROVIDERS",
  "SPOKE_FALLBACK_MODELS",
  "SPOKE_CHAT_MODEL",
  "OPENAI_API_KEY"
]

/** The model of agents that name none; null when replies are extracts. */
export const modelOf = (given: Variables, providers: Settings["providers"]): Settings["model"] => {
  const contextWindow = given.SPOKE_CONTEXT_WINDOW ?? defaultContextWindow
  if (given.OPENAI_API_KEY === undefined) return defaultModelOf(given.SPOKE_CHAT_MODEL, providers)
  const baseUrl = given.OPENAI_BASE_URL ?? defaultUrl
  return {
    provider: "openai",
    apiKey: given.OPENAI_API_KEY,
    baseUrl,
    api: given.SPOKE_OPENAI_API ?? (baseUrl === defaultUrl ? "responses" : "chat-completions"),
    chatModel: given.SPOKE_CHAT_MODEL ?? "gpt-6-luna",
    contextWindow
  }
}

/** Problems across all model variables. */
export const problemsOf = (given: Variables, environment: Environment) => {
  const { OPENAI_API_KEY, SPOKE_CHAT_MODEL, SPOKE_FALLBACK_MODELS = [], SPOKE_PROVIDERS } = given
  const problem = (variable: string, message: string) => [{ variable, message }]
  const providers = SPOKE_PROVIDERS ?? new Map()
  const isNamed = (model: string) => providers.has(model.split("/", 1)[0] ?? "")
  const withoutKey = [...providers].filter(
    ([, { apiKeyEnv }]) => apiKeyEnv !== undefined && environment[apiKeyEnv] === undefined
  )
  return [
    ...(withoutKey.length === 0
      ? []
      : problem("SPOKE_PROVIDERS", "Expected every apiKeyEnv to be the name of a variable that is set")),
    ...(providers.has("openai")
      ? problem("SPOKE_PROVIDERS", "The name openai is that of OPENAI_API_KEY and OPENAI_BASE_URL")
      : []),
    ...(providers.size === 0 && SPOKE_FALLBACK_MODELS.length > 0
      ? problem("SPOKE_PROVIDERS", "Required with SPOKE_FALLBACK_MODELS")
      : []),
    ...(providers.size > 0 &&
    OPENAI_API_KEY === undefined &&
    ![SPOKE_CHAT_MODEL ?? "", ...SPOKE_FALLBACK_MODELS].every(isNamed)
      ? problem(
          "SPOKE_CHAT_MODEL",
          "Required with SPOKE_PROVIDERS where OPENAI_API_KEY is not set: each model as provider/model"
        )
      : [])
  ]
}
