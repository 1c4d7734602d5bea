/** The APIs of providers, and the header in which each expects its key. */
import * as Redacted from "effect/Redacted"

/** `azure` is Azure OpenAI's dated API. Its newer one is `chat-completions`. */
export type ProviderApi = "responses" | "chat-completions" | "azure" | "anthropic"

/** The version of Anthropic's API, current since 2023. */
const anthropicVersion = "2023-06-01"

/** Headers that authenticate a request. */
export const keyHeaders = (api: ProviderApi, apiKey: Redacted.Redacted): Readonly<Record<string, string>> => {
  const key = Redacted.value(apiKey)
  if (api === "azure") return { "api-key": key }
  if (api === "anthropic") return { "x-api-key": key, "anthropic-version": anthropicVersion }
  return { authorization: `Bearer ${key}` }
}

/** Azure requires the version of its API in every address. */
export const versioned = (path: string, apiVersion: string | undefined): string =>
  apiVersion === undefined ? path : `${path}?api-version=${encodeURIComponent(apiVersion)}`
