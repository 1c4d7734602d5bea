/** Slack apps as a channel: events signed with the app's secret, replies with its token. */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type ChannelAdapter, channelRefusal } from "../../capabilities/ChannelAdapters.ts"
import { unreadableAnswer } from "../ProviderRequest.ts"
import { fieldsOf, identifierOf } from "../Fields.ts"
import { markdownFormatter } from "../Markdown.ts"
import { emptyDelivery } from "../Normalized.ts"
import { makeApi } from "./Api.ts"
import { normalize } from "./Inbound.ts"
import { noContactAddress } from "../Refusals.ts"
import { verifyTimestamped } from "../Signature.ts"

/** `v0=` and the HMAC-SHA-256 of `v0:{timestamp}:{body}`. */
const verify = verifyTimestamped({
  timestampHeader: "x-slack-request-timestamp",
  signatureHeader: "x-slack-signature",
  form: /^v0=([0-9a-f]{64})$/,
  signedPrefix: (timestamp) => `v0:${timestamp}:`
})

/** These three characters have a special meaning in any text. */
const escapeText = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** `base` is the configured address of Slack's API. */
export const slackAdapter = (http: HttpClient.HttpClient, base: string): ChannelAdapter => {
  const api = makeApi(http, base)
  return {
    name: "slack",
    title: "Slack",
    form: { account: null, secrets: [{ name: "signingSecret", label: "Signing secret" }] },
    webhook: "account",

    verify,
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
        if (teamId === undefined || botUserId === undefined) return yield* unreadableAnswer()
        return { externalId: `${teamId}.${botUserId}`, profile: { teamId, botUserId } }
      }),

    maxTextLength: 4_000,
    maxCaptionLength: 0,
    formatText: markdownFormatter({ strong: "*", emphasis: "_", code: "`", fence: "```" }),
    fileTypes: {},
    send: (to, { body }) =>
      Effect.gen(function* () {
        const thread = to.aliases.find(({ kind }) => kind === "thread")
        if (thread === undefined) return yield* noContactAddress()
        const [channel = "", ts] = thread.value.split(":")
        const answer = yield* api.post(to.accessToken, "chat.postMessage", {
          channel,
          text: escapeText(body),
          unfurl_links: false,
          unfurl_media: false,
          ...(ts === undefined ? {} : { thread_ts: ts })
        })
        const id = identifierOf(answer["ts"], 40)
        if (id === undefined) return yield* unreadableAnswer()
        return `${channel}:${id}`
      }),
    // Apps cannot mark messages as read, and can show typing only in the assistant's pane.
    markSeen: () => Effect.void,

    locate: ({ accessToken }, id) =>
      Effect.gen(function* () {
        const { file } = yield* api.get(accessToken, "files.info", { file: id })
        const { is_external, mimetype, size, url_private_download: url } = fieldsOf(file)
        // Whoever shares such a file chooses its address, which must not get the token.
        if (is_external === true) return yield* channelRefusal("Slack does not store the file.")
        const address = identifierOf(url, 2_048)
        if (address === undefined) return yield* unreadableAnswer()
        return { url: address, mime_type: identifierOf(mimetype, 200), file_size: Number(size) || 0 }
      }),
    // Files are fetched with the guarded client and the token.
    read: () => Effect.succeedNone
  }
}
