/** The provider of subscriptions and credits: its signed events, decoded into the types of domain/billing/Billing. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { BillingEvent } from "../domain/billing/Billing.ts"
import type { InvalidSignature, NotConfigured } from "../domain/Errors.ts"

export class BillingProvider extends Context.Tag("capabilities/BillingProvider")<
  BillingProvider,
  {
    /**
     * The event of a webhook's raw body; none when it is of a type that changes nothing here, or says nothing that can
     * be used. Nothing of the body is looked at before its signature holds.
     */
    readonly read: (
      body: Uint8Array,
      signature: string | undefined
    ) => Effect.Effect<Option.Option<BillingEvent>, InvalidSignature | NotConfigured>
  }
>() {}
