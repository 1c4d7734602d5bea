/**
 * Telegram bots as a channel. The token identifies the account, and activation registers our address as the bot's
 * webhook.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import {
  type ChannelAccess,
  type ChannelAdapter,
  type ChannelRecipient
} from "../../capabilities/ChannelAdapters.ts"
import { unreadableAnswer } from "../ProviderRequest.ts"
import { fieldsOf, identifierOf } from "../Fields.ts"
import { type MarkedSpan, parseMarkedText, toMarkedText } from "../MarkedText.ts"
import { emptyDelivery } from "../Normalized.ts"
import { makeApi } from "./Api.ts"
import { normalize } from "./Inbound.ts"
import { noContactAddress, invalidSignature } from "../Refusals.ts"
import { MiB } from "../../domain/Bytes.ts"

/** The secret of the webhook. It is derived from the token, so that a bot that is activated again keeps it. */
const webhookSecretOf = ({ accessToken }: ChannelAccess) =>
  createHmac("sha256", Redacted.value(accessToken)).update("spoke telegram webhook").digest("hex")

/** Compares in constant time. */
const isEqual = (given: string, expected: string) =>
  timingSafeEqual(
    createHmac("sha256", "compared").update(given).digest(),
    createHmac("sha256", "compared").update(expected).digest()
  )

const entityTypes = {
  strong: "bold",
  emphasis: "italic",
  code: "code",
  fence: "pre"
} as const satisfies Record<MarkedSpan["kind"], string>

const withEntities = (body: string) => {
  const { spans, text } = parseMarkedText(body)
  return { text, entities: spans.map(({ kind, ...place }) => ({ type: entityTypes[kind], ...place })) }
}

/** The chat, and the topic in it if the alias has one. */
const chatOf = ({ aliases }: ChannelRecipient) => {
  const found = aliases.find(({ kind }) => kind === "chat_id")
  if (found === undefined) return null
  const [chat = "", topic] = found.value.split(":")
  return { chat_id: chat, ...(topic === undefined ? {} : { message_thread_id: Number(topic) }) }
}

const picture = { as: "image", maxBytes: 10 * MiB } as const
const document = { as: "document", maxBytes: 50 * MiB } as const

/** `base` is the configured address of the Bot API. */
export const telegramAdapter = (http: HttpClient.HttpClient, base: string): ChannelAdapter => {
  const api = makeApi(http, base)
  return {
    name: "telegram",
    title: "Telegram",
    form: { account: null, secrets: [] },
    webhook: "account",

    verify: ({ header }, access) =>
      access !== null && isEqual(header("x-telegram-bot-api-secret-token") ?? "", webhookSecretOf(access))
        ? Either.void
        : Either.left(invalidSignature()),
    normalize: (body, now, access) => (access === null ? emptyDelivery : normalize(body, now, access)),

    prove: ({ accessToken }) =>
      Effect.gen(function* () {
        const me = fieldsOf(yield* api.call(accessToken, "getMe", {}))
        const id = identifierOf(me["id"], 30)
        if (id === undefined) return yield* unreadableAnswer()
        return { externalId: id, profile: { username: identifierOf(me["username"], 100) ?? "" } }
      }),
    connect: (access, url) =>
      api
        .call(access.accessToken, "setWebhook", {
          url,
          secret_token: webhookSecretOf(access),
          allowed_updates: ["message"]
        })
        .pipe(Effect.asVoid),

    maxTextLength: 4_096,
    maxCaptionLength: 1_024,
    formatText: toMarkedText,
    fileTypes: {
      "image/jpeg": picture,
      "image/png": picture,
      "image/webp": document,
      "image/gif": document,
      "application/pdf": document
    },
    send: (to, { body, file }) =>
      Effect.gen(function* () {
        const chat = chatOf(to)
        if (chat === null) return yield* noContactAddress()
        const { entities, text } = withEntities(body)
        const sent =
          file === null
            ? yield* api.call(to.accessToken, "sendMessage", {
                ...chat,
                text,
                entities,
                link_preview_options: { is_disabled: true }
              })
            : yield* api.send(
                to.accessToken,
                file.as === "image" ? "sendPhoto" : "sendDocument",
                {
                  ...Object.fromEntries(Object.entries(chat).map(([name, value]) => [name, String(value)])),
                  ...(text === "" ? {} : { caption: text, caption_entities: JSON.stringify(entities) })
                },
                {
                  field: file.as === "image" ? "photo" : "document",
                  name: file.name,
                  mimeType: file.mimeType,
                  bytes: file.bytes
                }
              )
        const id = identifierOf(fieldsOf(sent)["message_id"], 30)
        if (id === undefined) return yield* unreadableAnswer()
        return `${chat.chat_id}:${id}`
      }),
    markSeen: (to) => {
      const chat = chatOf(to)
      return chat === null
        ? Effect.void
        : Effect.asVoid(api.call(to.accessToken, "sendChatAction", { ...chat, action: "typing" }))
    },

    locate: ({ accessToken }, id) =>
      Effect.gen(function* () {
        const file = fieldsOf(yield* api.call(accessToken, "getFile", { file_id: id }))
        const path = identifierOf(file["file_path"], 1_000)
        if (path === undefined) return yield* unreadableAnswer()
        return { url: path, file_size: Number(file["file_size"]) || 0 }
      }),
    read: ({ accessToken }, path, maxBytes) => Effect.asSome(api.read(accessToken, path, maxBytes))
  }
}
