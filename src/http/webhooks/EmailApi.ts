/** Webhooks of the e-mail provider. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { EmailEvents } from "../../domain/accounts/EmailLog.ts"
import { PayloadTooLarge, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { OpenReason } from "../Auth.ts"
import { MaxBodyBytes, failure, success, maxWebhookBytes } from "../Envelope.ts"

/** An array of events, each about one e-mail. Events of unknown e-mails are accepted and ignored. */
const receive = HttpApiEndpoint.post("receive", "/api/webhooks/email")
  .setPayload(EmailEvents)
  .addSuccess(success(Schema.Struct({ received: Schema.Literal(true) })))
  .addError(failure(ValidationError, PayloadTooLarge, ServiceUnavailable))
  .annotate(MaxBodyBytes, maxWebhookBytes)
  .annotate(
    OpenReason,
    "The payload has to be valid and carries no signature; it can move a status, no more."
  )

export class EmailApi extends HttpApiGroup.make("emailEvents").add(receive) {}
