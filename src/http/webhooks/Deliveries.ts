/** Deliveries of providers whose accounts share an address. The body has the raw bytes that the provider signed. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { ChannelRequest } from "../../capabilities/ChannelAdapters.ts"
import { WebhookIngress } from "../../usecases/channels/WebhookIngress.ts"
import { maxWebhookBytes } from "../Envelope.ts"
import * as Headers from "../server/Headers.ts"
import * as RawRequests from "../server/RawRequests.ts"

const delivery = ({ body, headers }: RawRequests.RawRequest, now: number): ChannelRequest => ({
  header: (name) => Headers.get(headers, name),
  body,
  now: DateTime.unsafeMake(now)
})

const routes = Effect.map(WebhookIngress, (ingress): ReadonlyArray<RawRequests.RawRoute> =>
  ingress.shared.map((adapter) => ({
    path: `/api/webhooks/${adapter.name}`,
    maxBodyBytes: maxWebhookBytes,
    handle: (request) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => ingress.deliver(adapter, delivery(request, now))),
    handleSync: (request, now, done) => ingress.tryDeliver(adapter, delivery(request, now), done)
  }))
)

/** Adds the routes to the Node server of the context. */
export const layer = RawRequests.layer(routes)

/** Adds the routes to the router, for other servers. */
export const layerRouter = RawRequests.layerRouter(routes)
