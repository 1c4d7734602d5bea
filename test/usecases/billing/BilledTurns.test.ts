import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { Billing } from "../../../src/usecases/billing/Billing.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { checkout, event, subscription } from "../../http/billing/BillingEvents.ts"
import { billing, signatureOf } from "../../http/billing/BillingServer.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, turnLayer } from "../chat/TurnHarness.ts"

const deliver = (body: unknown) =>
  Effect.gen(function* () {
    const raw = JSON.stringify(body)
    yield* (yield* Billing).receive(new TextEncoder().encode(raw), signatureOf(raw))
  })

eachEngineLive("A chat turn of a tenant that pays", (it) => {
  it.scoped("follows the plan: 429 after the downgrade, allowed again with credits", () =>
    Effect.zipRight(
      reset,
      Effect.gen(function* () {
        const chat = yield* ChatTurn
        const scope = yield* Fixtures.agent()
        const { tenantId } = scope
        const turn = Effect.map(Effect.either(chat.complete(scope, request())), (outcome) =>
          Either.match(outcome, { onLeft: ({ _tag }) => _tag, onRight: () => "answered" })
        )
        // Three turns a month, no period of its own, so that the counter goes on.
        const { items: _, ...monthly } = subscription({ tenantId })
        yield* deliver(event("customer.subscription.created", 10, monthly))
        expect([yield* turn, yield* turn]).toEqual(["answered", "answered"])
        yield* deliver(event("customer.subscription.deleted", 20, monthly))
        expect(yield* turn).toBe("TURN_LIMIT_EXCEEDED")
        yield* deliver(event("checkout.session.completed", 30, checkout(tenantId, "2")))
        expect([yield* turn, yield* turn, yield* turn]).toEqual([
          "answered",
          "answered",
          "TURN_LIMIT_EXCEEDED"
        ])
        // What credits have paid for takes nothing from the plan: one of its three is left.
        yield* deliver(event("customer.subscription.created", 40, { ...monthly, id: "sub_2", created: 40 }))
        expect([yield* turn, yield* turn]).toEqual(["answered", "TURN_LIMIT_EXCEEDED"])
      }).pipe(Effect.provide(Layer.merge(turnLayer(), billing())))
    )
  )
})
