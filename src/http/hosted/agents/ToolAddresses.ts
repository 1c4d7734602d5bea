/**
 * The addresses that authorization servers of tools get: where they return browsers, and where they read who the client
 * is (OAuth Client ID Metadata Document). The document has no envelope, and everybody may read it.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isLocalHost } from "../../../domain/Address.ts"
import { clientMetadata, type ClientAddresses } from "../../../domain/agents/ToolConnection.ts"
import { toolCallback } from "./ToolsApi.ts"

const documentPath = "/api/tool-sign-ins/client.json"

export class ToolAddresses extends Context.Tag("http/hosted/agents/ToolAddresses")<
  ToolAddresses,
  ClientAddresses
>() {}

const addressesOf = (appUrl: string): ClientAddresses => {
  const document = new URL(documentPath, appUrl)
  const isPublic = document.protocol === "https:" && !isLocalHost(document.hostname)
  return { redirectUri: new URL(toolCallback, appUrl).href, documentUrl: isPublic ? document.href : null }
}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<ToolAddresses> =>
  Layer.succeed(ToolAddresses, addressesOf(appUrl))

/** Adds the route of the document. Its `client_id` is its own address, so there is none without a public one. */
export const layerDocument = (appUrl: string): Layer.Layer<never> =>
  HttpApiBuilder.Router.use((router) => {
    const { documentUrl, redirectUri } = addressesOf(appUrl)
    return documentUrl === null
      ? Effect.void
      : router.get(
          documentPath,
          HttpServerResponse.unsafeJson(
            {
              client_id: documentUrl,
              client_uri: new URL(appUrl).origin,
              ...clientMetadata(redirectUri),
              token_endpoint_auth_method: "none"
            },
            { headers: { "cache-control": "public, max-age=3600" } }
          )
        )
  })
