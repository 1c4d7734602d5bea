/**
 * Calls of Telegram's Bot API. The token is part of every address, so addresses must not appear in spans and errors.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { ChannelError, channelRefusal } from "../../capabilities/ChannelAdapters.ts"
import * as Json from "../../domain/Json.ts"
import type { JsonObject } from "../../domain/Text.ts"
import {
  download,
  requestJson,
  type NewFile,
  type ToChannelError,
  retryAfterOf,
  multipartBody
} from "../ProviderRequest.ts"
import { fieldsOf } from "../Fields.ts"

const callTimeout = Duration.seconds(10)
const transferTimeout = Duration.seconds(30)

/** The form of a valid token, because it becomes part of an address. */
const tokenForm = /^\d{1,20}:[A-Za-z0-9_-]{1,100}$/

const refusalReasons: ReadonlyMap<number, string> = new Map([
  [400, "Telegram did not accept the message"],
  [401, "Telegram refused the bot's token"],
  [403, "The contact has blocked the bot, or the bot is no longer a member of the chat"],
  [404, "Telegram refused the bot's token"],
  [413, "The file is too large for Telegram"]
])

/**
 * `{ok: false, error_code, description, parameters: {retry_after}}`. The description may repeat parts of the request.
 */
const toChannelError: ToChannelError = (status, headers, body, now) => {
  const answer = fieldsOf(Option.getOrNull(Either.getRight(Json.parse(body))))
  const seconds = fieldsOf(answer["parameters"])["retry_after"]
  const pause =
    typeof seconds === "number" && seconds >= 0 && seconds <= 3_600
      ? { retryAfter: Duration.seconds(seconds) }
      : retryAfterOf(headers, now)
  if (status === 429) {
    return new ChannelError({
      reason: "Refused",
      message: "Telegram's rate limit is reached.",
      retryable: true,
      ...pause
    })
  }
  const reason = answer["ok"] === false ? refusalReasons.get(status) : undefined
  if (reason !== undefined) return channelRefusal(`${reason} (code ${status}).`)
  const message = `Telegram answered with status ${status}.`
  return status >= 500
    ? new ChannelError({ reason: "Unknown", message, retryable: true })
    : new ChannelError({ reason: "Refused", message, retryable: status === 408, ...pause })
}

/** `base` is the configured address, such as `https://api.telegram.org`. Returns the result of the method. */
export const makeApi = (client: HttpClient.HttpClient, base: string) => {
  const http = HttpClient.withTracerDisabledWhen(client, () => true)

  const addressOf = (token: Redacted.Redacted, path: string, prefix = "") =>
    tokenForm.test(Redacted.value(token))
      ? Effect.succeed(`${base}${prefix}/bot${Redacted.value(token)}/${path}`)
      : channelRefusal("The token does not have the form of a bot's token.")

  const resultOf = (answer: unknown) => fieldsOf(answer)["result"]

  const call = (token: Redacted.Redacted, method: string, body: JsonObject) =>
    Effect.gen(function* () {
      const url = yield* addressOf(token, method)
      const request = HttpClientRequest.post(url, { acceptJson: true }).pipe(
        HttpClientRequest.bodyUnsafeJson(body)
      )
      return resultOf(yield* requestJson(http, request, callTimeout, toChannelError))
    }).pipe(Effect.withSpan(`Telegram.${method}`))

  const send = (
    token: Redacted.Redacted,
    method: string,
    fields: Readonly<Record<string, string>>,
    file: NewFile
  ) =>
    Effect.gen(function* () {
      const url = yield* addressOf(token, method)
      const withBody = yield* multipartBody(fields, file)
      const request = HttpClientRequest.post(url, { acceptJson: true }).pipe(withBody)
      return resultOf(yield* requestJson(http, request, transferTimeout, toChannelError))
    }).pipe(Effect.withSpan(`Telegram.${method}`))

  /** The bytes of a file. `path` is the `file_path` of `getFile`. */
  const read = (token: Redacted.Redacted, path: string, maxBytes: number) =>
    Effect.gen(function* () {
      const url = yield* addressOf(token, path, "/file")
      return yield* download(http, HttpClientRequest.get(url), maxBytes, transferTimeout)
    }).pipe(Effect.withSpan("Telegram.file"))

  return { call, send, read } as const
}
