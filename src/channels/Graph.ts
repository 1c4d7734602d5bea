/** Calls of Meta's Graph API, at the configured address. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { ChannelError, channelRefusal } from "../capabilities/ChannelAdapters.ts"
import * as Json from "../domain/Json.ts"
import type { JsonObject } from "../domain/Text.ts"
import { requestJson, type ToChannelError, retryAfterOf } from "./ProviderRequest.ts"

/** Time-out of one call. */
const callTimeout = Duration.seconds(10)

export class Graph extends Context.Tag("channels/Graph")<
  Graph,
  {
    /** GETs `{base}/{path}` with the token. */
    readonly get: (path: string, token: Redacted.Redacted) => Effect.Effect<unknown, ChannelError>
    /** POSTs to `{base}/{path}` with the token. Returns the JSON of a 2xx answer. */
    readonly post: (
      path: string,
      token: Redacted.Redacted,
      body: JsonObject
    ) => Effect.Effect<unknown, ChannelError>
  }
>() {}

const Failure = Schema.Struct({
  error: Schema.Struct({
    code: Schema.Int,
    error_subcode: Schema.optional(Schema.Unknown),
    is_transient: Schema.optional(Schema.Unknown)
  })
})
const decodeFailure = Schema.decodeUnknownOption(Failure)

/** Error codes, by their meaning. */
const windowClosedCodes = new Set([470, 131047])
const noRecipientCodes = new Set([551, 131021, 131026, 131030])
const noAccessCodes = new Set([3, 10, 102, 190, 131005, 131031])
const transientCodes = new Set([
  1, 2, 4, 17, 32, 341, 613, 1200, 80007, 130429, 131000, 131016, 131048, 131056, 133004
])
/** Messenger's subcodes. */
const windowClosedSubcode = 2018278
const noRecipientSubcode = 2018001

const reasonOf = (code: number, subcode: unknown): string | null => {
  if (windowClosedCodes.has(code) || subcode === windowClosedSubcode)
    return "The provider's window for replies is closed"
  if (noRecipientCodes.has(code) || subcode === noRecipientSubcode)
    return "The provider cannot reach the recipient"
  if (noAccessCodes.has(code) || (code >= 200 && code < 300))
    return "The provider refused the channel's access"
  return null
}

/**
 * Converts an answer outside 2xx. An answer of a gateway instead of the provider does not show whether the message was
 * sent.
 */
export const toChannelError: ToChannelError = (status, headers, body, now) => {
  const retryAfter = retryAfterOf(headers, now)
  const failure = Option.getOrNull(Option.flatMap(Either.getRight(Json.parse(body)), decodeFailure))
  if (failure === null) {
    const message = `The provider answered with status ${status}.`
    return status >= 500
      ? new ChannelError({ reason: "Unknown", message, retryable: true, ...retryAfter })
      : new ChannelError({
          reason: "Refused",
          message,
          retryable: status === 429 || status === 408,
          ...retryAfter
        })
  }
  const { code, error_subcode: subcode, is_transient } = failure.error
  const reason = reasonOf(code, subcode)
  if (reason !== null) {
    return channelRefusal(`${reason} (code ${code}).`)
  }
  return new ChannelError({
    reason: "Refused",
    message: `The provider refused the message with status ${status} (code ${code}).`,
    retryable: status === 429 || status >= 500 || transientCodes.has(code) || is_transient === true,
    ...retryAfter
  })
}

/** `base` is the configured address, such as `https://graph.facebook.com/v25.0`. */
export const layerHttp = (base: string): Layer.Layer<Graph, never, HttpClient.HttpClient> =>
  Layer.effect(
    Graph,
    Effect.map(HttpClient.HttpClient, (http) => {
      const send = (request: HttpClientRequest.HttpClientRequest, token: Redacted.Redacted) =>
        requestJson(http, HttpClientRequest.bearerToken(request, token), callTimeout, toChannelError)
      return {
        get: (path, token) =>
          send(HttpClientRequest.get(`${base}/${path}`, { acceptJson: true }), token).pipe(
            Effect.withSpan("Graph.get")
          ),
        post: (path, token, body) =>
          send(
            HttpClientRequest.post(`${base}/${path}`, { acceptJson: true }).pipe(
              HttpClientRequest.bodyUnsafeJson(body)
            ),
            token
          ).pipe(Effect.withSpan("Graph.post"))
      }
    })
  )
