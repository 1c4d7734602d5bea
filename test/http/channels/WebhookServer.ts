/** The webhooks of messaging providers over real HTTP on a free port, with the database of the context. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { createHmac } from "node:crypto"
import { MailSubmission } from "../../../src/capabilities/Mailer.ts"
import { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"
import * as ProviderHttp from "../../../src/capabilities/ModelRuntime/ProviderHttp.ts"
import { layer as layerSecretBox } from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import * as BuiltIn from "../../../src/channels/BuiltIn.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import type { DeliveryStatus, InboundMessage } from "../../../src/domain/channels/Channel.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import { listen } from "../../../src/http/server/Server.ts"
import * as Deliveries from "../../../src/http/webhooks/Deliveries.ts"
import { MessagingApi } from "../../../src/http/webhooks/MessagingApi.ts"
import { MessagingHandlers } from "../../../src/http/webhooks/MessagingHandlers.ts"
import type { Database } from "../../../src/store/Database.ts"
import { InboundEvents } from "../../../src/store/channels/InboundEvents.ts"
import { channelSettings } from "../../channels/Settings.ts"
import { WebhookIngress } from "../../../src/usecases/channels/WebhookIngress.ts"
import { DeliveryReceipts } from "../../../src/usecases/channels/DeliveryReceipts.ts"

export const verifyToken = "verify-token-canary-51c0"
export const appSecret = "app-secret-canary-77aa"

const Surface = HttpApi.make("spoke").add(MessagingApi)

export interface Options {
  readonly verifyToken?: string | null
  readonly appSecret?: string | null
  /** Whether an echo is of a message that this service sent. */
  readonly isOwn?: (echo: InboundMessage) => boolean
  readonly recordDelivery?: (status: DeliveryStatus) => Effect.Effect<void>
  /** Whether deliveries are handled before the router, without tracing. */
  readonly raw?: boolean
  readonly inbox?: Layer.Layer<InboundEvents, never, Database>
}

const secret = (given: string | null | undefined, otherwise: string) =>
  given === null ? null : Redacted.make(given ?? otherwise)

export const webhookServer = (options: Options = {}) =>
  HttpApiBuilder.serve().pipe(
    Layer.provide(Boundary.layer),
    Layer.provide(Layer.provide(HttpApiBuilder.api(Surface), [MessagingHandlers, Deliveries.layerRouter])),
    Layer.merge(
      options.raw === true ? Layer.provide(Deliveries.layer, Layer.setTracerEnabled(false)) : Layer.empty
    ),
    Layer.provide(WebhookIngress.Default),
    Layer.provideMerge(options.inbox ?? InboundEvents.Default.pipe(Layer.provideMerge(layerTable))),
    Layer.provide(
      Layer.succeed(DeliveryReceipts, {
        isOwn: (echo) => Effect.sync(() => options.isOwn?.(echo) ?? false),
        recordDelivery: (status) => options.recordDelivery?.(status) ?? Effect.void
      })
    ),
    Layer.provide(channelSettings({ verifyToken: secret(options.verifyToken, verifyToken) })),
    Layer.provide(
      BuiltIn.layerHttp({
        appSecret: secret(options.appSecret, appSecret),
        graphUrl: "https://graph.invalid",
        telegramUrl: "https://telegram.invalid",
        slackUrl: "https://slack.invalid"
      }).pipe(
        Layer.provide([ProviderHttp.layer, Layer.mock(MailSubmission, {}), Layer.mock(OutboundHttp, {})])
      )
    ),
    Layer.provideMerge(ChannelStore.Default),
    Layer.provideMerge(layerSecretBox([Redacted.make("a master secret of the tests, long enough")])),
    Layer.provideMerge(listen({ host: "127.0.0.1", port: 0, grace: "1 second" }))
  )

/** Any JSON. The tests assert its fields. */
type Json = ReturnType<typeof JSON.parse>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Undefined if the body is not JSON. */
  readonly json: Json
}

const parsed = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const request = (path: string, init: RequestInit) =>
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Effect.promise(async (signal): Promise<Answer> => {
      if (address._tag !== "TcpAddress") throw new Error("The server has no port.")
      const response = await fetch(`http://127.0.0.1:${address.port}${path}`, { ...init, signal })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: parsed(text) }
    })
  )

export const signatureOf = (body: string | Uint8Array, key = appSecret) =>
  `sha256=${createHmac("sha256", key).update(body).digest("hex")}`

export const challenge = (channel: string, query: Readonly<Record<string, string>>) =>
  request(`/api/webhooks/${channel}?${new URLSearchParams(query).toString()}`, {})

/** Delivers `body` as the provider does, with the signature of its bytes. A `signature` of null is not sent. */
export const deliver = (
  channel: string,
  body: unknown,
  { signature }: { readonly signature?: string | null } = {}
) => {
  const bytes =
    body instanceof Uint8Array
      ? body
      : new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body))
  const header = signature === undefined ? signatureOf(bytes) : signature
  return request(`/api/webhooks/${channel}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(header === null ? {} : { "x-hub-signature-256": header })
    },
    body: bytes
  })
}

/** A delivery of text messages from `from` with these ids. */
export const whatsapp = (ids: ReadonlyArray<string>, from = "491700000001") => ({
  object: "whatsapp_business_account",
  entry: [
    {
      id: "waba",
      changes: [
        {
          field: "messages",
          value: {
            messaging_product: "whatsapp",
            metadata: { display_phone_number: "15550001", phone_number_id: "pn_1" },
            contacts: [{ profile: { name: "Ada" }, wa_id: from }],
            messages: ids.map((id) => ({
              from,
              id,
              timestamp: "1767225600",
              type: "text",
              text: { body: `text of ${id}` }
            }))
          }
        }
      ]
    }
  ]
})
