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
import { optional } from "../../domain/Optional.ts"
import { OpenReason } from "../Auth.ts"
import { MaxBodyBytes, failure, success, maxWebhookBytes } from "../Envelope.ts"

const Subscription = Schema.Struct({
  "hub.mode": optional(Schema.String),
  "hub.verify_token": optional(Schema.String),
  "hub.challenge": optional(Schema.String)
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
  .annotate(MaxBodyBytes, maxWebhookBytes)

export class MessagingApi extends HttpApiGroup.make("messaging")
  .add(whatsappChallenge)
  .add(messengerChallenge)
  .add(deliver)
  .annotateEndpoints(
    OpenReason,
    "Providers have no key: a challenge proves the verify token, a delivery itself by its signature or secret."
  ) {}
