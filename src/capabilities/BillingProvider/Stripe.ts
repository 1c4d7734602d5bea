/** Stripe's signed webhooks, verified by its own package. It sends no requests to Stripe. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { InvalidSignature, NotConfigured } from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { BillingProvider } from "../BillingProvider.ts"
import { eventOf } from "./StripeEvents.ts"

/** Maximum difference, in seconds, between the time of a signature and now, in either direction. */
const tolerance = 300

/**
 * The package accepts signatures from the future, and parses `t=` leniently. Here `t` must be one whole number near
 * now.
 */
const isTimely = (signature: string, now: number): boolean => {
  const [time, ...others] = signature.split(",").filter((item) => item.startsWith("t="))
  const [, seconds] = /^t=(\d{1,12})$/.exec(time ?? "") ?? []
  return others.length === 0 && seconds !== undefined && Number(seconds) * 1_000 - now <= tolerance * 1_000
}

const unsigned = () =>
  new InvalidSignature({ message: "The signature does not belong to this body, or is not of now." })

const make = (secret: Redacted.Redacted) =>
  Effect.gen(function* () {
    // Loaded on demand, because it takes 0.2 seconds and few installations need it.
    const { Stripe } = yield* Effect.promise(() => import("stripe"))
    const verify = (body: Uint8Array, signature: string, now: number) =>
      Effect.try({
        try: () =>
          isTimely(signature, now) &&
          Stripe.webhooks.signature?.verifyHeader(
            body,
            signature,
            Redacted.value(secret),
            tolerance,
            undefined,
            now
          ) === true,
        // The thrown error contains the body.
        catch: unsigned
      })
    return BillingProvider.of({
      read: Effect.fn("BillingProvider.read")(function* (body: Uint8Array, signature: string | undefined) {
        if (!(yield* verify(body, signature ?? "", yield* Clock.currentTimeMillis))) return yield* unsigned()
        return Option.flatMap(Either.getRight(Json.parse(new TextDecoder().decode(body))), eventOf)
      })
    })
  })

/** Without the endpoint's secret every event fails: 503 NOT_CONFIGURED. */
export const layerStripe = (secret: Option.Option<Redacted.Redacted>) =>
  Layer.effect(
    BillingProvider,
    Option.match(secret, {
      onSome: make,
      onNone: () =>
        Effect.succeed(
          BillingProvider.of({
            read: () =>
              Effect.fail(
                new NotConfigured({ message: "Billing events need BILLING_WEBHOOK_SECRET to be set." })
              )
          })
        )
    })
  )
