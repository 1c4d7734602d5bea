/** The interfaces of providers, and how each of them takes its key. */
import * as Redacted from "effect/Redacted"

/** `azure` is Azure OpenAI's dated interface; its newer one is `chat-completions` like any other. */
export type ProviderApi = "responses" | "chat-completions" | "azure" | "anthropic"

/** The version of Anthropic's interface that is spoken; it has had this one since 2023. */
const anthropicVersion = "2023-06-01"

/** What a request says of who asks. */
export const keyHeaders = (api: ProviderApi, apiKey: Redacted.Redacted): Readonly<Record<string, string>> => {
  const key = Redacted.value(apiKey)
  if (api === "azure") return { "api-key": key }
  if (api === "anthropic") return { "x-api-key": key, "anthropic-version": anthropicVersion }
  return { authorization: `Bearer ${key}` }
}

/** Azure wants the version of its interface in every address. */
export const versioned = (path: string, apiVersion: string | undefined): string =>
  apiVersion === undefined ? path : `${path}?api-version=${encodeURIComponent(apiVersion)}`
