/** One suite on every provider: nothing is believed that is not signed, and what is signed is read into our words. */
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Stripe } from "stripe"
import { BillingProvider } from "../../src/capabilities/BillingProvider.ts"
import { layerStripe } from "../../src/capabilities/BillingProvider/Stripe.ts"
import { april, checkout, event, subscription } from "../http/billing/BillingEvents.ts"

interface Provider {
  readonly layer: Layer.Layer<BillingProvider>
  /** The provider without the secret of the endpoint. */
  readonly unset: Layer.Layer<BillingProvider>
  readonly sign: (body: string, seconds: number) => string
  /** A subscription that was sold, in the provider's own form; and an event that says nothing to us. */
  readonly sold: string
  readonly other: string
}

const bytes = (text: string) => new TextEncoder().encode(text)

const suite = (name: string, { layer, other, sign, sold, unset }: Provider) =>
  describe(name, () => {
    const read = (body: string, signature: string | undefined) =>
      Effect.flatMap(BillingProvider, (provider) => provider.read(bytes(body), signature))
    const now = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1_000))

    it.live("reads what was signed", () =>
      Effect.gen(function* () {
        const found = yield* read(sold, sign(sold, yield* now))
        expect(Option.getOrNull(found)).toMatchObject({
          id: "evt_sold",
          object: "sub_1",
          tenantId: "ten_1",
          fact: { _tag: "Subscription", plan: "pro", status: "active", ended: false }
        })
      }).pipe(Effect.provide(layer))
    )

    it.live("says nothing of what is signed but of no use", () =>
      Effect.gen(function* () {
        for (const body of [other, "{}", "[]", "null"])
          expect([body, yield* read(body, sign(body, yield* now))]).toEqual([body, Option.none()])
      }).pipe(Effect.provide(layer))
    )

    it.live(
      "believes nothing without its signature, with another's, or with an old one, and repeats none of it",
      () =>
        Effect.gen(function* () {
          const at = yield* now
          const good = sign(sold, at)
          const bad = [
            undefined,
            "",
            "nonsense",
            sign(`${sold} `, at),
            sign(sold, at - 3_600),
            good.slice(0, -2)
          ]
          for (const signature of bad) {
            const failure = yield* Effect.flip(read(sold, signature))
            expect(failure._tag).toBe("INVALID_SIGNATURE")
            expect(JSON.stringify(failure)).not.toContain("sub_1")
          }
        }).pipe(Effect.provide(layer))
    )

    it.live("reads what was signed by a clock that is ahead, as the provider's own library does", () =>
      Effect.gen(function* () {
        const found = yield* read(sold, sign(sold, (yield* now) + 400))
        expect(Option.getOrNull(found)).toMatchObject({ id: "evt_sold" })
      }).pipe(Effect.provide(layer))
    )

    it.live("refuses what is signed but no JSON", () =>
      Effect.gen(function* () {
        for (const body of ["no JSON", ""]) {
          const failure = yield* Effect.flip(read(body, sign(body, yield* now)))
          expect(failure._tag).toBe("VALIDATION_ERROR")
        }
      }).pipe(Effect.provide(layer))
    )

    it.live("reads nothing where no secret is set", () =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(read(sold, sign(sold, yield* now)))
        expect(failure._tag).toBe("NOT_CONFIGURED")
      }).pipe(Effect.provide(unset))
    )
  })

const secret = "whsec_of_the_suite"

suite("Stripe's events", {
  layer: layerStripe(Option.some(Redacted.make(secret))),
  unset: layerStripe(Option.none()),
  sign: (payload, timestamp) => Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
  sold: JSON.stringify(
    event(
      "customer.subscription.created",
      april.start,
      subscription({ tenantId: "ten_1", period: april }),
      "evt_sold"
    )
  ),
  other: JSON.stringify(event("customer.created", april.start, { id: "cus_1" }))
})

describe("Stripe's events", () => {
  const read = (body: string, change = (signature: string) => signature) =>
    Effect.gen(function* () {
      const provider = yield* BillingProvider
      const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
      const header = Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp })
      return yield* provider.read(bytes(body), change(header))
    }).pipe(Effect.provide(layerStripe(Option.some(Redacted.make(secret)))))

  const sale = (credits: unknown) =>
    JSON.stringify(
      event(
        "checkout.session.completed",
        10,
        checkout("ten_1", undefined, { metadata: { tenantId: "ten_1", credits } })
      )
    )

  it.live("count as credits only what is a plain decimal integer", () =>
    Effect.gen(function* () {
      for (const credits of ["7", "500", "1000000000", 12]) {
        const found = yield* read(sale(credits))
        expect(Option.map(found, ({ fact }) => fact)).toEqual(
          Option.some({ _tag: "Purchase", credits: Number(credits) })
        )
      }
      const none = [
        ..."0x10; 7 ;7 ;0;-5;+5;1.5;1.0;1e3;1_000;1,000;07;Infinity;NaN;0b11;0o17;१;1000000001;99999999999".split(
          ";"
        ),
        ..."".split(";"),
        ["5"],
        [[7]],
        { valueOf: 5 },
        true,
        null,
        12.5,
        "5\n"
      ]
      for (const credits of none)
        expect([credits, yield* read(sale(credits))]).toEqual([credits, Option.none()])
    })
  )

  it.live("are believed only with one time of their signature, in whole seconds", () =>
    Effect.gen(function* () {
      const body = sale("7")
      expect(Option.isSome(yield* read(body))).toBe(true)
      for (const change of [
        (header: string) => header.replace("t=", "t=0,t="),
        (header: string) => header.replace(",v1", "x,v1"),
        (header: string) => header.replace("t=", "t= "),
        (header: string) => header.replace("t=", "t=+")
      ]) {
        expect((yield* Effect.flip(read(body, change)))._tag).toBe("INVALID_SIGNATURE")
      }
    })
  )
})
