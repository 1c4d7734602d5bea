/** Deliveries of messaging providers: the body is the bytes that the provider signed. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { MessagingChannel } from "../../domain/channels/Channel.ts"
import { WebhookIngress } from "../../usecases/channels/WebhookIngress.ts"
import { webhookLimit } from "../Envelope.ts"
import * as Headers from "../server/Headers.ts"
import * as RawRequests from "../server/RawRequests.ts"

const signatureOf = ({ headers }: RawRequests.RawRequest) => Headers.line(headers, "x-hub-signature-256")

const routes = Effect.map(WebhookIngress, (ingress): ReadonlyArray<RawRequests.RawRoute> =>
  MessagingChannel.literals.map((channel) => ({
    path: `/api/webhooks/${channel}`,
    maxBodyBytes: webhookLimit,
    answer: (request) => ingress.deliver(channel, signatureOf(request), request.body),
    answerAtOnce: (request, now, done) =>
      ingress.take(channel, signatureOf(request), request.body, DateTime.unsafeMake(now), done)
  }))
)

/** On the Node server of the context. */
export const layer = RawRequests.layer(routes)

/** For every other server. */
export const layerRouter = RawRequests.layerRouter(routes)
