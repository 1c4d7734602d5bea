/**
 * Verification requests of messaging providers, and deliveries to single accounts. `webhooks/Deliveries` takes
 * deliveries to an address that all accounts share.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Schema from "effect/Schema"
import { DeliveryResult, MessagingChannel } from "../../domain/channels/Channel.ts"
import { ExternalId } from "../../domain/channels/ChannelConfiguration.ts"
import {
  Forbidden,
  NotConfigured,
  NotFound,
  PayloadTooLarge,
  ServiceUnavailable,
  Unauthorized,
  ValidationError
} from "../../domain/Errors.ts"
import { Open } from "../Auth.ts"
import { BodyLimit, failure, success, webhookLimit } from "../Envelope.ts"

const optional = Schema.optionalWith(Schema.String, { exact: true })
const Subscription = Schema.Struct({
  "hub.mode": optional,
  "hub.verify_token": optional,
  "hub.challenge": optional
})
export type Subscription = typeof Subscription.Type

/** The response's body is the challenge. */
const whatsappChallenge = HttpApiEndpoint.get("whatsappChallenge", "/api/webhooks/whatsapp")
  .setUrlParams(Subscription)
  .addSuccess(HttpApiSchema.Text())
  .addError(failure(ValidationError, Forbidden, NotConfigured))
const messengerChallenge = HttpApiEndpoint.get("messengerChallenge", "/api/webhooks/messenger")
  .setUrlParams(Subscription)
  .addSuccess(HttpApiSchema.Text())
  .addError(failure(ValidationError, Forbidden, NotConfigured))

/**
 * Deliveries to one account of a channel whose accounts have their own addresses. The body has the provider's raw
 * bytes. A body that requests a challenge is answered with it as plain text.
 */
const deliver = HttpApiEndpoint.post("deliver", "/api/webhooks/:channel/:account")
  .setPath(Schema.Struct({ channel: MessagingChannel, account: ExternalId }))
  .addSuccess(success(DeliveryResult))
  .addError(
    failure(ValidationError, Unauthorized, NotFound, PayloadTooLarge, NotConfigured, ServiceUnavailable)
  )
  .annotate(BodyLimit, webhookLimit)

export class MessagingApi extends HttpApiGroup.make("messaging")
  .add(whatsappChallenge)
  .add(messengerChallenge)
  .add(deliver)
  .annotateEndpoints(
    Open,
    "Providers have no key: a challenge proves the verify token, a delivery itself by its signature or secret."
  ) {}
