/** How messaging providers find out that an address is ours. What they deliver is taken by `webhooks/Deliveries`. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Schema from "effect/Schema"
import { Forbidden, NotConfigured, ValidationError } from "../../domain/Errors.ts"
import { Open } from "../Auth.ts"
import { failure } from "../Envelope.ts"

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

export class MessagingApi extends HttpApiGroup.make("messaging")
  .add(whatsappChallenge)
  .add(messengerChallenge)
  .annotateEndpoints(Open, "Providers have no key: a challenge proves the verify token.") {}
