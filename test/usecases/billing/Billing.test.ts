import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import { TenantId } from "../../../src/domain/Ids.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { Billing } from "../../../src/usecases/billing/Billing.ts"
import * as Fixtures from "../../Fixtures.ts"
import { charge, checkout, event, invoice, may, subscription } from "../../http/billing/BillingEvents.ts"
import { billing, signatureOf } from "../../http/billing/BillingServer.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const deliver = (body: unknown) =>
  Effect.gen(function* () {
    const raw = JSON.stringify(body)
    return yield* (yield* Billing).receive(new TextEncoder().encode(raw), signatureOf(raw))
  })

const ends = (tenantId: string) =>
  Effect.gen(function* () {
    const store = yield* SubscriptionStore
    const scope = { tenantId: TenantId.make(tenantId) }
    const found = yield* store.find(scope)
    return JSON.stringify({ found, credits: yield* store.credits(scope) })
  })

/** A life with everything in it, two events of the same second and one of another subscription. */
const life = (tenantId: string) => [
  event("customer.subscription.created", 10, subscription({ tenantId, status: "incomplete" }), "evt_01"),
  event("invoice.paid", 10, invoice(), "evt_02"),
  event("customer.subscription.updated", 10, subscription({ tenantId }), "evt_03"),
  event("checkout.session.completed", 12, checkout(tenantId, "100"), "evt_04"),
  event("invoice.payment_failed", 20, invoice("sub_1", "in_2"), "evt_05"),
  event(
    "customer.subscription.updated",
    20,
    subscription({ tenantId, status: "past_due", period: may }),
    "evt_06"
  ),
  event("charge.refunded", 25, charge(100, 30), "evt_07"),
  event("invoice.paid", 30, invoice("sub_1", "in_2"), "evt_08"),
  event("customer.subscription.deleted", 40, subscription({ tenantId, status: "canceled" }), "evt_09"),
  event(
    "customer.subscription.created",
    41,
    subscription({ tenantId, id: "sub_2", begun: 41, status: "incomplete" }),
    "evt_10"
  ),
  event("invoice.paid", 42, invoice("sub_2", "in_3"), "evt_11"),
  event("invoice.payment_failed", 43, invoice("sub_2", "in_4"), "evt_12")
]

const places = Array.from({ length: 12 }, (_, place) => place)

/** Some prefix of the life, each event at least once, in any order. */
const deliveries = FastCheck.integer({ min: 1, max: places.length }).chain((length) =>
  FastCheck.tuple(
    FastCheck.shuffledSubarray(places.slice(0, length), { minLength: length, maxLength: length }),
    FastCheck.array(FastCheck.integer({ min: 0, max: length - 1 }), { maxLength: 6 })
  ).map(([once, again]) => ({ length, order: [...once, ...again] }))
)

/** Whatever a provider may tell of two subscriptions, two payments and two tenants, much of it in the same second. */
const anything = FastCheck.record({
  type: FastCheck.constantFrom(
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.updated",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.deleted",
    "invoice.paid",
    "invoice.payment_failed",
    "checkout.session.completed",
    "charge.refunded"
  ),
  created: FastCheck.integer({ min: 10, max: 16 }),
  which: FastCheck.constantFrom(1, 2),
  tenant: FastCheck.constantFrom<"one" | "other" | "none">("one", "one", "one", "other", "none"),
  plan: FastCheck.constantFrom("pro", "pro", "self-hosted", "gold"),
  status: FastCheck.constantFrom(
    "active",
    "active",
    "trialing",
    "past_due",
    "unpaid",
    "incomplete",
    "paused"
  ),
  late: FastCheck.boolean(),
  amount: FastCheck.integer({ min: 1, max: 100 })
})
type Anything = typeof anything extends FastCheck.Arbitrary<infer A> ? A : never

const lives = FastCheck.array(anything, { minLength: 2, maxLength: 10 }).chain((told) => {
  const all = told.map((_, place) => place)
  return FastCheck.record({
    told: FastCheck.constant(told),
    order: FastCheck.shuffledSubarray(all, { minLength: all.length, maxLength: all.length }),
    again: FastCheck.array(FastCheck.nat(all.length - 1), { maxLength: 5 })
  })
})

const eventOf = (
  { amount, created, late, plan, status, tenant, type, which }: Anything,
  place: number,
  tenants: { readonly one: string; readonly other: string }
) => {
  const named = tenant === "none" ? {} : { tenantId: tenants[tenant] }
  const id = `sub_${which}`
  const object = type.startsWith("customer.subscription.")
    ? subscription({ id, begun: which, plan, status, ...named, ...(late ? { period: may } : {}) })
    : type.startsWith("invoice.")
      ? { ...invoice(id), metadata: named }
      : type === "charge.refunded"
        ? charge(100, amount, `pi_${which}`)
        : checkout("", String(amount), {
            payment_intent: `pi_${which}`,
            metadata: { ...named, credits: String(amount) }
          })
  return event(type, created, object, `evt_${place}`)
}

const provided = Effect.provide(billing())

const tenant = Effect.gen(function* () {
  yield* reset
  return (yield* Fixtures.agent()).tenantId
})

eachEngineLive("The state that follows from billing events", (it) => {
  it.effect("does not depend on their order and repeats", () =>
    Effect.gen(function* () {
      for (const { length, order } of FastCheck.sample(deliveries, { numRuns: 40, seed: 34 })) {
        const first = yield* tenant
        for (const told of life(first).slice(0, length)) yield* deliver(told)
        const expected = yield* ends(first)
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from tenants where id = ${first}`
        yield* sql`delete from billing_events`
        const second = (yield* Fixtures.agent()).tenantId
        const events = life(second)
        for (const place of order) yield* deliver(events[place])
        expect([order, yield* ends(second)]).toEqual([order, expected])
      }
    }).pipe(provided)
  )

  it.effect("is the same for random events of several tenants in any order with repeats", () =>
    Effect.gen(function* () {
      for (const { again, order, told } of FastCheck.sample(lives, { numRuns: 60, seed: 6 })) {
        const outcomeOf = (places: ReadonlyArray<number>) =>
          Effect.gen(function* () {
            yield* reset
            const [one, other] = [(yield* Fixtures.agent()).tenantId, (yield* Fixtures.agent()).tenantId]
            const all = told.map((each, place) => eventOf(each, place, { one, other }))
            for (const place of places) yield* deliver(all[place])
            return [yield* ends(one), yield* ends(other)]
          })
        const expected = yield* outcomeOf(told.map((_, place) => place))
        const found = yield* outcomeOf([...order, ...again])
        expect([told, order, again, found]).toEqual([told, order, again, expected])
      }
    }).pipe(provided)
  )

  it.effect("ends the plan of a tenant whose subscription is moved to another, in any order of events", () =>
    Effect.gen(function* () {
      for (const order of [
        [0, 1],
        [1, 0]
      ]) {
        yield* reset
        const [one, other] = [(yield* Fixtures.agent()).tenantId, (yield* Fixtures.agent()).tenantId]
        const all = [
          event("customer.subscription.created", 10, subscription({ tenantId: one })),
          event("customer.subscription.updated", 20, subscription({ tenantId: other }))
        ]
        for (const place of order) yield* deliver(all[place])
        expect(JSON.parse(yield* ends(one))).toMatchObject({
          found: { value: { plan: "free", status: "canceled" } }
        })
        expect(JSON.parse(yield* ends(other))).toMatchObject({
          found: { value: { plan: "pro", status: "active" } }
        })
      }
    }).pipe(provided)
  )

  it.effect("is the same when all of them arrive at the same time", () =>
    Effect.gen(function* () {
      const expected = yield* Effect.gen(function* () {
        const tenantId = yield* tenant
        yield* Effect.forEach(life(tenantId), deliver)
        return yield* ends(tenantId)
      })
      for (let round = 0; round < 5; round++) {
        const tenantId = yield* tenant
        const all = [...life(tenantId), ...life(tenantId).toReversed()]
        yield* Effect.all(all.map(deliver), { concurrency: "unbounded" })
        expect(yield* ends(tenantId)).toBe(expected)
      }
    }).pipe(provided)
  )

  it.effect("is complete when deliveries are interrupted and repeated", () =>
    Effect.gen(function* () {
      const calm = yield* tenant
      yield* Effect.forEach(life(calm), deliver)
      const expected = yield* ends(calm)
      const tenantId = yield* tenant
      for (const [place, told] of life(tenantId).entries()) {
        const cut = yield* Effect.fork(deliver(told))
        yield* Effect.sleep(place)
        yield* Fiber.interrupt(cut)
        yield* deliver(told)
      }
      expect(yield* ends(tenantId)).toBe(expected)
    }).pipe(provided)
  )

  it.effect("leaves no tenant with a plan that is not paid for", () =>
    Effect.gen(function* () {
      const tenantId = yield* tenant
      yield* Effect.forEach(life(tenantId).slice(0, 9), deliver)
      expect(JSON.parse(yield* ends(tenantId))).toMatchObject({
        found: { value: { plan: "free", status: "canceled" } },
        credits: { granted: 70, used: 0 }
      })
    }).pipe(provided)
  )
})
