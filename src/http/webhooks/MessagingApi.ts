/** What messaging providers call. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Schema from "effect/Schema"
import { Delivered } from "../../domain/Channel.ts"
import {
  Forbidden,
  NotConfigured,
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

/** The challenge itself is the body. */
const whatsappChallenge = HttpApiEndpoint.get("whatsappChallenge", "/api/webhooks/whatsapp")
  .setUrlParams(Subscription)
  .addSuccess(HttpApiSchema.Text())
  .addError(failure(ValidationError, Forbidden, NotConfigured))
const messengerChallenge = HttpApiEndpoint.get("messengerChallenge", "/api/webhooks/messenger")
  .setUrlParams(Subscription)
  .addSuccess(HttpApiSchema.Text())
  .addError(failure(ValidationError, Forbidden, NotConfigured))

const refusals = failure(ValidationError, Unauthorized, PayloadTooLarge, NotConfigured, ServiceUnavailable)

/** The body is whatever the provider signed. */
const whatsapp = HttpApiEndpoint.post("whatsapp", "/api/webhooks/whatsapp")
  .addSuccess(success(Delivered))
  .addError(refusals)
const messenger = HttpApiEndpoint.post("messenger", "/api/webhooks/messenger")
  .addSuccess(success(Delivered))
  .addError(refusals)

export class MessagingApi extends HttpApiGroup.make("messaging")
  .add(whatsappChallenge)
  .add(whatsapp)
  .add(messengerChallenge)
  .add(messenger)
  .annotateEndpoints(BodyLimit, webhookLimit)
  .annotateEndpoints(
    Open,
    "Providers have no key: a challenge proves the verify token, a delivery its signature."
  ) {}
