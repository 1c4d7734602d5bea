/** Calls of Slack's API. Most errors come with status 200: `{ok: false, error}`, where `error` is a code. */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { ChannelError, channelRefusal } from "../../capabilities/ChannelAdapters.ts"
import type { JsonObject } from "../../domain/Text.ts"
import { requestJson, type ToChannelError, retryAfterOf } from "../ProviderRequest.ts"
import { type Fields, fieldsOf } from "../Fields.ts"

const callTimeout = Duration.seconds(10)

const accessCodes = new Set([
  "access_denied",
  "account_inactive",
  "ekm_access_denied",
  "enterprise_is_restricted",
  "invalid_auth",
  "missing_scope",
  "no_permission",
  "not_allowed_token_type",
  "not_authed",
  "org_login_required",
  "team_access_not_granted",
  "token_expired",
  "token_revoked"
])
const rateLimitCodes = new Set(["ratelimited", "rate_limited"])
/** After these errors the message may have been accepted. */
const unknownOutcomeCodes = new Set([
  "fatal_error",
  "internal_error",
  "request_timeout",
  "service_unavailable"
])

const errorCode = /^[a-z0-9_]{1,60}$/

const errorOf = (error: unknown): ChannelError => {
  const code = typeof error === "string" && errorCode.test(error) ? error : "unknown"
  if (accessCodes.has(code)) return channelRefusal(`Slack refused the app's token (${code}).`)
  if (rateLimitCodes.has(code)) return channelRefusal("Slack's rate limit is reached.", true)
  if (unknownOutcomeCodes.has(code))
    return new ChannelError({ reason: "Unknown", message: `Slack has failed (${code}).`, retryable: true })
  return channelRefusal(`Slack did not accept the message (${code}).`)
}

const toChannelError: ToChannelError = (status, headers, _body, now) => {
  const message = `Slack answered with status ${status}.`
  return status >= 500
    ? new ChannelError({ reason: "Unknown", message, retryable: true })
    : new ChannelError({
        reason: "Refused",
        message,
        retryable: status === 429 || status === 408,
        ...retryAfterOf(headers, now)
      })
}

/** `base` is the configured address, such as `https://slack.com/api`. Returns answers with `ok: true`. */
export const makeApi = (http: HttpClient.HttpClient, base: string) => {
  const send = (token: Redacted.Redacted, method: string, request: HttpClientRequest.HttpClientRequest) =>
    requestJson(http, HttpClientRequest.bearerToken(request, token), callTimeout, toChannelError).pipe(
      Effect.flatMap((answer): Effect.Effect<Fields, ChannelError> => {
        const fields = fieldsOf(answer)
        return fields["ok"] === true ? Effect.succeed(fields) : errorOf(fields["error"])
      }),
      Effect.withSpan(`Slack.${method}`)
    )
  return {
    post: (token: Redacted.Redacted, method: string, body: JsonObject) =>
      send(
        token,
        method,
        HttpClientRequest.post(`${base}/${method}`, { acceptJson: true }).pipe(
          HttpClientRequest.bodyUnsafeJson(body)
        )
      ),
    get: (token: Redacted.Redacted, method: string, query: Readonly<Record<string, string>>) =>
      send(
        token,
        method,
        HttpClientRequest.get(`${base}/${method}`, { acceptJson: true }).pipe(
          HttpClientRequest.setUrlParams(query)
        )
      )
  } as const
}
