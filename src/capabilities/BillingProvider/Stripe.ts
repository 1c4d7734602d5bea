/** Verifies Stripe's signed webhooks. Sends no request to Stripe. */
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { InvalidSignature, NotConfigured, ValidationError } from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { BillingProvider } from "../BillingProvider.ts"
import { eventOf } from "./StripeEvents.ts"

/** Maximum age of a signature, in seconds, as in Stripe's own library. */
const maxAgeSeconds = 300

/** The time of a signature in seconds; none unless it has exactly one. */
const timeOf = (signature: ReadonlyArray<string>): string | undefined => {
  const [time, ...others] = signature.filter((item) => item.startsWith("t="))
  return others.length === 0 ? /^t=(\d{1,12})$/.exec(time ?? "")?.[1] : undefined
}

const isRecent = (seconds: string, now: number): boolean =>
  Math.floor(now / 1_000) - Number(seconds) <= maxAgeSeconds

/**
 * True when the time in `header` is recent and a `v1=` value is the lower-case hex HMAC-SHA-256 of that time, a dot and
 * `body`. Stripe sends two values while a secret is rotated. Compared in constant time.
 */
const isSigned = (secret: Redacted.Redacted, header: string, body: Uint8Array, now: number): boolean => {
  const signature = header.split(",")
  const seconds = timeOf(signature)
  if (seconds === undefined || !isRecent(seconds, now)) return false
  const expected = createHmac("sha256", Redacted.value(secret)).update(`${seconds}.`).update(body).digest()
  return signature.some((item) => {
    const given = /^v1=([0-9a-f]{64})$/.exec(item)?.[1]
    return given !== undefined && timingSafeEqual(expected, Buffer.from(given, "hex"))
  })
}

const invalidSignature = () =>
  new InvalidSignature({ message: "The signature does not match this body, or is too old." })

const invalidJson = () => new ValidationError({ message: "The body is not valid JSON." })

const make = (secret: Redacted.Redacted) =>
  BillingProvider.of({
    read: Effect.fn("BillingProvider.read")(function* (body: Uint8Array, signature: string | undefined) {
      const now = yield* Clock.currentTimeMillis
      if (!isSigned(secret, signature ?? "", body, now)) return yield* invalidSignature()
      const event = yield* Effect.mapError(Json.parse(new TextDecoder().decode(body)), invalidJson)
      return eventOf(event)
    })
  })

/** Without the endpoint's secret every event fails: 503 NOT_CONFIGURED. */
export const layerStripe = (secret: Option.Option<Redacted.Redacted>) =>
  Layer.succeed(
    BillingProvider,
    Option.match(secret, {
      onSome: make,
      onNone: () =>
        BillingProvider.of({
          read: () =>
            Effect.fail(
              new NotConfigured({ message: "Billing events need BILLING_WEBHOOK_SECRET to be set." })
            )
        })
    })
  )
