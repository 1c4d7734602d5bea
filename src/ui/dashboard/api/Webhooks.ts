/** Webhook endpoints of the tenant. */
import { infiniteQueryOptions } from "@tanstack/react-query"
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
import { call, firstPage } from "./Client.ts"
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

export const webhooks = infiniteQueryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ pageParam, signal }) =>
    call<typeof WebhookPage.Encoded>("GET", root, { query: { limit: 100, cursor: pageParam }, signal }),
  initialPageParam: firstPage(),
  getNextPageParam: ({ nextCursor }) => nextCursor
})

export const deliveries = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["webhooks", id, "deliveries"],
    queryFn: ({ pageParam, signal }) =>
      call<typeof DeliveryPage.Encoded>("GET", `${root}/${id}/deliveries`, {
        query: { limit: 50, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
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
