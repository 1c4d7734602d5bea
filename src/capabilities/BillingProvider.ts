/** The provider of subscriptions and credits: its signed events, decoded into the types of domain/billing/Billing. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { BillingEvent } from "../domain/billing/Billing.ts"
import type { InvalidSignature, NotConfigured, ValidationError } from "../domain/Errors.ts"

export class BillingProvider extends Context.Tag("capabilities/BillingProvider")<
  BillingProvider,
  {
    /**
     * Decodes the event in a webhook's raw body. None for event types that change nothing here and for unusable events.
     * The body is parsed only after its signature was verified; VALIDATION_ERROR when it is not JSON.
     */
    readonly read: (
      body: Uint8Array,
      signature: string | undefined
    ) => Effect.Effect<Option.Option<BillingEvent>, InvalidSignature | NotConfigured | ValidationError>
  }
>() {}
