/** Slack apps as a channel: events signed with the app's secret, replies with its token. */
import type * as HttpClient from "@effect/platform/HttpClient"
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { ChannelAdapter, ChannelRequest } from "../../capabilities/ChannelAdapters.ts"
import { unreadable } from "../Exchange.ts"
import { fieldsOf, identifierOf } from "../Fields.ts"
import { shownAs } from "../Markdown.ts"
import { emptyDelivery } from "../Normalized.ts"
import { makeApi } from "./Api.ts"
import { normalize } from "./Inbound.ts"
import { unreached, unsigned } from "../Refusals.ts"

/** Maximum age of a request. An older one may be a replay. */
const maxRequestAge = Duration.minutes(5)
const signatureForm = /^v0=([0-9a-f]{64})$/
const stampForm = /^\d{1,12}$/

/** Checks `v0=` and the HMAC-SHA-256 of `v0:{timestamp}:{body}`, for requests of the last five minutes. */
const isSigned = (secret: Redacted.Redacted, { body, header, now }: ChannelRequest) => {
  const stamp = header("x-slack-request-timestamp") ?? ""
  const given = signatureForm.exec(header("x-slack-signature") ?? "")?.[1]
  if (given === undefined || !stampForm.test(stamp)) return false
  if (Math.abs(now.epochMillis - Number(stamp) * 1_000) > Duration.toMillis(maxRequestAge)) return false
  const expected = createHmac("sha256", Redacted.value(secret)).update(`v0:${stamp}:`).update(body).digest()
  return timingSafeEqual(expected, Buffer.from(given, "hex"))
}

/** These three characters have a special meaning in any text. */
const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** `base` is the configured address of Slack's API. */
export const slackAdapter = (http: HttpClient.HttpClient, base: string): ChannelAdapter => {
  const api = makeApi(http, base)
  return {
    name: "slack",
    title: "Slack",
    form: { account: null, secrets: [{ name: "signingSecret", label: "Signing secret" }] },
    webhook: "account",

    verify: (request, access) => {
      const secret = access?.secrets["signingSecret"]
      return secret !== undefined && isSigned(secret, request) ? Either.void : Either.left(unsigned())
    },
    challenge: (body) => {
      const { challenge, type } = fieldsOf(body)
      return type === "url_verification" && typeof challenge === "string"
        ? Option.some(challenge)
        : Option.none()
    },
    normalize: (body, now, access) => (access === null ? emptyDelivery : normalize(body, now, access)),

    prove: ({ accessToken }) =>
      Effect.gen(function* () {
        const { team_id, user_id } = yield* api.post(accessToken, "auth.test", {})
        const [teamId, botUserId] = [identifierOf(team_id, 60), identifierOf(user_id, 60)]
        if (teamId === undefined || botUserId === undefined) return yield* unreadable()
        return { externalId: `${teamId}.${botUserId}`, profile: { teamId, botUserId } }
      }),

    maxTextLength: 4_000,
    maxCaptionLength: 0,
    shown: shownAs({ strong: "*", emphasis: "_", code: "`", fence: "```" }),
    carries: {},
    send: (to, { body }) =>
      Effect.gen(function* () {
        const thread = to.aliases.find(({ kind }) => kind === "thread")
        if (thread === undefined) return yield* unreached()
        const [channel = "", ts] = thread.value.split(":")
        const answer = yield* api.post(to.accessToken, "chat.postMessage", {
          channel,
          text: escaped(body),
          unfurl_links: false,
          unfurl_media: false,
          ...(ts === undefined ? {} : { thread_ts: ts })
        })
        const id = identifierOf(answer["ts"], 40)
        if (id === undefined) return yield* unreadable()
        return `${channel}:${id}`
      }),
    // Apps cannot mark messages as read, and can show typing only in the assistant's pane.
    seen: () => Effect.void,

    locate: ({ accessToken }, id) =>
      Effect.gen(function* () {
        const { file } = yield* api.get(accessToken, "files.info", { file: id })
        const { mimetype, size, url_private_download: url } = fieldsOf(file)
        const address = identifierOf(url, 2_048)
        if (address === undefined) return yield* unreadable()
        return { url: address, mime_type: identifierOf(mimetype, 200), file_size: Number(size) || 0 }
      }),
    // Files are fetched with the guarded client and the token.
    read: () => Effect.succeedNone
  }
}
