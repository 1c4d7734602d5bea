/** Webhooks of the billing provider. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  InvalidSignature,
  NotConfigured,
  PayloadTooLarge,
  ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import { OpenReason } from "../Auth.ts"
import { MaxBodyBytes, failure, success, maxWebhookBytes } from "../Envelope.ts"

/** The body has the raw bytes that the provider signed. Events of unknown types are accepted and ignored. */
const receive = HttpApiEndpoint.post("receive", "/api/webhooks/billing")
  .addSuccess(success(Schema.Struct({ received: Schema.Literal(true) })))
  .addError(failure(InvalidSignature, ValidationError, PayloadTooLarge, NotConfigured, ServiceUnavailable))
  .annotate(MaxBodyBytes, maxWebhookBytes)
  .annotate(OpenReason, "The provider has no key: an event proves itself by its signature.")

export class BillingApi extends HttpApiGroup.make("billing").add(receive) {}
