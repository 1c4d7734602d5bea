import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { type Answer, operate } from "../accounts/AccountsServer.ts"
import { april, charge, checkout, event, invoice, may, subscription } from "./BillingEvents.ts"
import {
  billingServer,
  free,
  storedEventIds,
  makeTenant,
  type Options,
  pro,
  secret,
  send,
  signatureOf,
  subscriptionOf
} from "./BillingServer.ts"

const served = <A, E, R>(effect: Effect.Effect<A, E, R>, options: Options = {}) =>
  Effect.zipRight(reset, effect).pipe(Effect.provide(billingServer(options)), Effect.scoped)

const iso = (seconds: number) => new Date(seconds * 1_000).toISOString()
const periodOf = ({ start, end }: typeof april) => ({ start: iso(start), end: iso(end) })

const expectTaken = (answer: Answer) => {
  expect([answer.status, answer.data, answer.error]).toEqual([200, { received: true }, undefined])
}

const untouched = { plan: "self-hosted", status: "active", period: null }

eachEngineLive("POST /api/webhooks/billing", (it) => {
  it.effect("verifies the signature over the raw body, under the neutral header and the provider's own", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const spaced = `{ "id":"evt_a",\n "type":"customer.subscription.created", "created":10, "data":{"object":${JSON.stringify(
          subscription({ tenantId })
        )}} }`
        expectTaken(yield* send(spaced))
        expectTaken(
          yield* send(event("customer.subscription.updated", 20, subscription({ tenantId }), "evt_b"), {
            header: "stripe-signature"
          })
        )
        expect(yield* storedEventIds).toEqual(["evt_a", "evt_b"])
      })
    )
  )

  it.effect("answers 400 INVALID_SIGNATURE to a wrong signature, or one older than 300 s", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const raw = JSON.stringify(event("customer.subscription.created", 10, subscription({ tenantId })))
        const now = Math.floor(Date.now() / 1_000)
        const good = signatureOf(raw)
        const wrong = [
          signatureOf(raw, "whsec_other"),
          signatureOf(`${raw} `),
          signatureOf(raw, secret, now - 320),
          good.replace(/v1=/u, "v0="),
          good.replace(/^t=\d+/u, `t=${now - 1}`),
          good.replace(/^t=\d+,/u, ""),
          "t=x,v1=y",
          "nonsense",
          ""
        ]
        for (const signature of wrong) {
          const answer = yield* send(raw, { signature })
          expect([signature, answer.status, answer.error?.code]).toEqual([
            signature,
            400,
            "INVALID_SIGNATURE"
          ])
          expect(answer.text).not.toContain(secret)
          expect(answer.text).not.toContain(tenantId)
        }
        expect((yield* subscriptionOf(tenantId)).subscription).toMatchObject(untouched)
        expectTaken(yield* send(raw, { signature: signatureOf(raw, secret, now - 280) }))
        expectTaken(yield* send(raw, { signature: `${good},v1=${"0".repeat(64)}` }))
      })
    )
  )

  it.effect("answers 503 NOT_CONFIGURED to any request without BILLING_WEBHOOK_SECRET", () =>
    served(
      Effect.gen(function* () {
        for (const signature of ["", signatureOf("{}", "x")]) {
          const answer = yield* send("{}", { signature })
          expect([answer.status, answer.error.code]).toEqual([503, "NOT_CONFIGURED"])
        }
      }),
      { secret: null }
    )
  )

  it.effect("accepts bodies of up to 4 MiB", () =>
    served(
      Effect.gen(function* () {
        const padded = (bytes: number) =>
          JSON.stringify({ ...event("ping", 1, {}), padding: "x".repeat(bytes) })
        expectTaken(yield* send(padded(3_900_000)))
        const answer = yield* send(padded(4_194_304))
        expect([answer.status, answer.error.code]).toEqual([413, "PAYLOAD_TOO_LARGE"])
      })
    )
  )

  it.effect("acknowledges events without a meaning here: unknown types, thin events, unusable forms", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const sold = subscription({ tenantId })
        const bodies = [
          event("customer.created", 10, { id: "cus_1" }),
          ...[
            "customer.subscription.trial_will_end",
            "invoice.payment_action_required",
            "invoice.finalized",
            "charge.dispute.funds_withdrawn",
            "billing.credit_grant.created",
            "billing.credit_grant.updated",
            "billing.credit_balance_transaction.created",
            "billing.alert.triggered",
            "entitlements.active_entitlement_summary.updated"
          ].map((type) => event(type, 10, sold)),
          event("charge.dispute.created", 10, { id: "dp_1", payment_intent: "pi_1" }),
          event("constructor", 10, sold),
          {
            id: "evt_thin",
            object: "v2.core.event",
            type: "customer.subscription.created",
            created: "2030-01-01"
          },
          event("customer.subscription.created", 10, {}),
          event("invoice.paid", 10, { id: "in_1" }),
          event("charge.refunded", 10, charge(0, 0)),
          { id: 5 },
          [],
          "null"
        ]
        for (const body of bodies) expectTaken(yield* send(body))
        const broken = yield* send("not JSON at all")
        expect([broken.status, broken.error.code]).toEqual([400, "VALIDATION_ERROR"])
        expect(yield* storedEventIds).toEqual([])
        expect((yield* subscriptionOf(tenantId)).subscription).toMatchObject(untouched)
      })
    )
  )

  it.effect("changes nothing for an unknown tenant or plan, and applies the event once it is known", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        expectTaken(
          yield* send(event("customer.subscription.created", 10, subscription({ tenantId: "ten_x" })))
        )
        expectTaken(
          yield* send(event("customer.subscription.created", 10, subscription({ tenantId, plan: "gold" })))
        )
        expectTaken(
          yield* send(
            event("customer.subscription.created", 10, subscription({ tenantId, plan: "__proto__" }))
          )
        )
        expectTaken(yield* send(event("checkout.session.completed", 10, checkout("ten_x", "5"))))
        expect(yield* storedEventIds).toEqual([])
        expect(yield* subscriptionOf(tenantId)).toMatchObject({
          subscription: untouched,
          credits: { granted: 0, used: 0 }
        })
      })
    )
  )

  it.effect("follows a subscription: created, paid, past due, paid again, changed, deleted", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const follow = (body: unknown) =>
          Effect.gen(function* () {
            expectTaken(yield* send(body))
            return (yield* subscriptionOf(tenantId)).subscription
          })
        const active = { plan: "pro", status: "active", period: periodOf(april), entitlements: pro }
        expect(
          yield* follow(
            event("customer.subscription.created", 10, subscription({ tenantId, status: "incomplete" }))
          )
        ).toEqual({ plan: "free", status: "incomplete", period: null, entitlements: free })
        expect(yield* follow(event("invoice.paid", 11, invoice()))).toEqual(active)
        expect(yield* follow(event("invoice.payment_failed", 20, invoice()))).toEqual({
          ...active,
          status: "past_due"
        })
        // The older shape of an invoice.
        expect(yield* follow(event("invoice.paid", 21, { id: "in_1", subscription: "sub_1" }))).toEqual(
          active
        )
        // The older shape of a subscription.
        const { items: _, ...old } = subscription({ tenantId })
        expect(
          yield* follow(
            event("customer.subscription.updated", 30, {
              ...old,
              current_period_start: may.start,
              current_period_end: may.end
            })
          )
        ).toEqual({ ...active, period: periodOf(may) })
        expect(
          yield* follow(
            event("customer.subscription.deleted", 40, subscription({ tenantId, status: "canceled" }))
          )
        ).toEqual({ plan: "free", status: "canceled", period: null, entitlements: free })
        // A late update does not revive what was cancelled.
        expect(
          (yield* follow(event("customer.subscription.updated", 35, subscription({ tenantId })))).plan
        ).toBe("free")
        expect((yield* follow(event("invoice.paid", 50, invoice()))).plan).toBe("free")
      })
    )
  )

  it.effect("grants no plan while a subscription is unpaid, paused or was never paid for", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        let created = 10
        for (const [type, status, plan] of [
          ["created", "trialing", "pro"],
          ["paused", "paused", "free"],
          ["resumed", "active", "pro"],
          ["updated", "unpaid", "free"],
          ["updated", "past_due", "pro"],
          ["updated", "incomplete_expired", "free"]
        ] as const) {
          yield* send(event(`customer.subscription.${type}`, ++created, subscription({ tenantId, status })))
          const { subscription: now } = yield* subscriptionOf(tenantId)
          expect([status, now.plan, now.status]).toEqual([status, plan, status])
        }
      })
    )
  )

  it.effect("keeps the newer of two subscriptions when the older one ends late", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const older = { id: "sub_old", tenantId, begun: 1 }
        const newer = { id: "sub_new", tenantId, begun: 2, period: may }
        yield* send(event("customer.subscription.created", 10, subscription(older)))
        yield* send(event("customer.subscription.created", 20, subscription(newer)))
        yield* send(event("customer.subscription.deleted", 30, subscription(older)))
        expect((yield* subscriptionOf(tenantId)).subscription).toMatchObject({
          plan: "pro",
          period: periodOf(may)
        })
      })
    )
  )

  it.effect("applies the later change of the operator and the provider; an older event changes nothing", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const put = operate("PUT", `/api/operator/tenants/${tenantId}/subscription`, {
          body: { plan: "deal", entitlements: { ...pro, turns: 77 } }
        })
        const plan = Effect.map(subscriptionOf(tenantId), (found) => [
          found.subscription.plan,
          found.subscription.status
        ])
        yield* put
        yield* send(event("customer.subscription.created", 100, subscription({ tenantId })))
        expect(yield* plan).toEqual(["pro", "active"])
        yield* put
        expect(yield* plan).toEqual(["deal", "active"])
        yield* send(event("customer.subscription.updated", 90, subscription({ tenantId })))
        expect(yield* plan).toEqual(["deal", "active"])
        yield* send(event("invoice.payment_failed", 110, invoice()))
        expect(yield* plan).toEqual(["pro", "past_due"])
      })
    )
  )

  it.effect("sets only the payment status for a subscription without an event of its own", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const about = { id: "in_9", subscription: "sub_9", subscription_details: { metadata: { tenantId } } }
        yield* send(event("invoice.payment_failed", 10, about))
        expect((yield* subscriptionOf(tenantId)).subscription).toMatchObject({
          ...untouched,
          status: "past_due"
        })
        yield* send(event("invoice.paid", 20, about))
        expect((yield* subscriptionOf(tenantId)).subscription).toMatchObject(untouched)
      })
    )
  )

  it.effect(
    "adds the credits of a paid checkout once, and none for one that is unpaid or without credits",
    () =>
      served(
        Effect.gen(function* () {
          const tenantId = yield* makeTenant()
          const credits = Effect.map(subscriptionOf(tenantId), (found) => found.credits)
          const unpaid = checkout(tenantId, "500", { payment_status: "unpaid" })
          yield* send(event("checkout.session.completed", 10, unpaid))
          for (const nothing of ["0", "-5", "1.5", "many", "", "1e12", undefined]) {
            yield* send(event("checkout.session.completed", 10, checkout(tenantId, nothing, { id: "cs_0" })))
          }
          yield* send(
            event("checkout.session.completed", 10, checkout(tenantId, undefined, { mode: "subscription" }))
          )
          expect(yield* credits).toEqual({ granted: 0, used: 0 })
          expect((yield* subscriptionOf(tenantId)).subscription).toMatchObject(untouched)
          // The payment arrives later, and is told of twice under different events.
          const paid = checkout(tenantId, "500")
          yield* send(event("checkout.session.async_payment_succeeded", 20, paid))
          yield* send(event("checkout.session.completed", 21, paid))
          expect(yield* credits).toEqual({ granted: 500, used: 0 })
          const again = checkout(tenantId, "100", { id: "cs_2", payment_intent: "pi_2" })
          yield* send(event("checkout.session.completed", 30, again))
          expect(yield* credits).toEqual({ granted: 600, used: 0 })
          // A tenth is paid back, then the rest; told of late and twice.
          yield* send(event("charge.refunded", 50, charge(1_000, 1_000)))
          yield* send(event("charge.refunded", 40, charge(1_000, 100)))
          expect(yield* credits).toEqual({ granted: 100, used: 0 })
          yield* send(event("charge.refunded", 60, charge(1_000, 100, "pi_2")))
          expect(yield* credits).toEqual({ granted: 90, used: 0 })
        })
      )
  )

  it.effect("applies a refund to the tenant of its payment, in any order of events", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const sql = yield* SqlClient.SqlClient
        const bought = (number: number) =>
          checkout(tenantId, "100", { id: `cs_${number}`, payment_intent: `pi_${number}` })
        yield* send(event("charge.refunded", 20, charge(1_000, 1_000, "pi_1")))
        yield* send(event("checkout.session.completed", 10, bought(1)))
        yield* send(event("checkout.session.completed", 30, bought(2)))
        yield* send(event("charge.refunded", 40, charge(1_000, 500, "pi_2")))
        expect(yield* sql`select distinct tenant_id as id from billing_events`).toEqual([{ id: tenantId }])
        expect((yield* subscriptionOf(tenantId)).credits).toEqual({ granted: 50, used: 0 })
      })
    )
  )

  it.effect("applies an event once, also for concurrent and repeated deliveries", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const bought = event("checkout.session.completed", 10, checkout(tenantId, "5"), "evt_once")
        const answers = yield* Effect.all(
          Array.from({ length: 20 }, () => send(bought)),
          { concurrency: "unbounded" }
        )
        answers.forEach(expectTaken)
        expect(yield* storedEventIds).toEqual(["evt_once"])
        expect((yield* subscriptionOf(tenantId)).credits).toEqual({ granted: 5, used: 0 })
        // Different events of one tenant at the same time see each other.
        yield* Effect.all(
          Array.from({ length: 20 }, (_, place) =>
            send(
              event(
                "checkout.session.completed",
                20,
                checkout(tenantId, "10", { id: `cs_${place}`, payment_intent: `pi_many_${place}` })
              )
            )
          ),
          { concurrency: "unbounded" }
        )
        expect((yield* subscriptionOf(tenantId)).credits).toEqual({ granted: 205, used: 0 })
      })
    )
  )

  it.effect("removes characters that the database cannot store", () =>
    served(
      Effect.gen(function* () {
        const tenantId = yield* makeTenant()
        const odd = subscription({ tenantId, id: "sub_\u0000x", status: "acti\u0000ve" })
        expectTaken(yield* send(event("customer.subscription.created", 10, odd, "evt_\u0000\ud800")))
        expect((yield* subscriptionOf(tenantId)).subscription.plan).toBe("pro")
      })
    )
  )

  it.effect("answers 503 when an event could not be applied, does not store it, and applies a repeat", () =>
    served(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const tenantId = yield* makeTenant()
        const sold = event("customer.subscription.created", 10, subscription({ tenantId }), "evt_again")
        // The effect fails after the claim.
        const failed = yield* sql`alter table subscriptions rename column plan to gone`.pipe(
          Effect.zipRight(send(sold)),
          Effect.ensuring(Effect.orDie(sql`alter table subscriptions rename column gone to plan`))
        )
        expect([failed.status, failed.error.code]).toEqual([503, "SERVICE_UNAVAILABLE"])
        expect(yield* storedEventIds).toEqual([])
        expectTaken(yield* send(sold))
        expect((yield* subscriptionOf(tenantId)).subscription.plan).toBe("pro")
      })
    )
  )
})
