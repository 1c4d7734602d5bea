/** The typed HTTP client as effects: `import { makeClient } from "spoke/client/effect"`. */
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import { PublicApi } from "../http/PublicApi.ts"
import { originOf } from "./Transport.ts"

export { PublicApi }

export interface ClientSettings {
  /** Address of the server, with or without `/v1`. */
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted
}

/** Uses the `HttpClient` of the context. Values are decoded, errors are the tagged ones that each route declares. */
export const makeClient = ({ apiKey, baseUrl }: ClientSettings) =>
  HttpApiClient.make(PublicApi, {
    baseUrl: originOf(baseUrl),
    transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader("x-api-key", Redacted.value(apiKey)))
  })
