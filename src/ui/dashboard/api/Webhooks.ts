/** Webhook endpoints of the tenant. */
import type {
  CreateWebhook,
  EventType as DeclaredType,
  PatchWebhook,
  Webhook as Declared,
  WebhookDelivery
} from "../../../domain/events/Webhook.ts"
import type {
  DeliveryPage,
  MadeWebhook,
  TestedWebhook,
  WebhookPage
} from "../../../http/hosted/events/WebhooksApi.ts"
import { call, pagesOf } from "./Client.ts"
import { membersOf } from "./membersOf.ts"

export type Webhook = typeof Declared.Encoded
export type Delivery = typeof WebhookDelivery.Encoded
export type EventType = typeof DeclaredType.Encoded

export const eventTypes = membersOf<EventType>({
  "conversation.started": true,
  "turn.settled": true,
  "handoff.requested": true,
  "handoff.taken": true,
  "message.sent": true,
  "source.ready": true,
  "source.failed": true,
  "feedback.given": true,
  "version.published": true,
  "budget.near": true,
  "channel.failing": true,
  "channel.recovered": true,
  "gap.found": true
})

const root = "/api/webhook-endpoints"

export const webhooks = pagesOf<typeof WebhookPage.Encoded>(["webhooks"], root, { limit: 100 })

export const deliveries = (id: string) =>
  pagesOf<typeof DeliveryPage.Encoded>(["webhooks", id, "deliveries"], `${root}/${id}/deliveries`, {
    limit: 50
  })

/** Only this answer contains the secret. */
export const createWebhook = (body: typeof CreateWebhook.Encoded) =>
  call<typeof MadeWebhook.Encoded, typeof CreateWebhook.Encoded>("POST", root, { body })

export const setWebhookActive = ({ id, version }: Webhook, active: boolean) =>
  call<unknown, typeof PatchWebhook.Encoded>("PATCH", `${root}/${id}`, {
    body: { status: active ? "active" : "disabled" },
    version
  })

/** Only this answer contains the new secret. */
export const rotateWebhook = (id: string) => call<typeof MadeWebhook.Encoded>("POST", `${root}/${id}/rotate`)

export const testWebhook = (id: string) => call<typeof TestedWebhook.Encoded>("POST", `${root}/${id}/test`)

export const deleteWebhook = (id: string) => call("DELETE", `${root}/${id}`)
