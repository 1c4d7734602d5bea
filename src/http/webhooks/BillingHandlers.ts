import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Billing } from "../../usecases/billing/Billing.ts"
import { Api } from "../Api.ts"

/** Events of the billing provider. The signature is in the neutral header or the provider's own. */
export const BillingHandlers = HttpApiBuilder.group(Api, "billing", (handlers) =>
  Effect.map(Billing, (billing) =>
    handlers.handleRaw("receive", ({ request }) =>
      request.arrayBuffer.pipe(
        // The boundary answers for a body that cannot be read.
        Effect.orDie,
        Effect.flatMap((body) =>
          billing.receive(
            new Uint8Array(body),
            request.headers["billing-signature"] ?? request.headers["stripe-signature"]
          )
        )
      )
    )
  )
)
