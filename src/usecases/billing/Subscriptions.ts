/** Subscriptions that the operator sets for tenants. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import type { PutSubscription, TenantScope } from "../../domain/accounts/Account.ts"
import { Subscription } from "../../domain/agents/Agent.ts"
import { NotFound } from "../../domain/Errors.ts"
import { SubscriptionStore } from "../../store/billing/Subscriptions.ts"

export class Subscriptions extends Effect.Service<Subscriptions>()("usecases/billing/Subscriptions", {
  effect: Effect.gen(function* () {
    const store = yield* SubscriptionStore
    const keyStore = yield* KeyStore

    /** Replaces the tenant's subscription. It is active until the billing provider changes it. */
    const put = Effect.fn("Subscriptions.put")(function* (
      scope: TenantScope,
      { plan, period, entitlements }: PutSubscription
    ) {
      const subscription = Subscription.make({ plan, status: "active", period: period ?? null, entitlements })
      const stored = yield* Effect.ensuring(
        store.put(scope, subscription),
        keyStore.invalidate({ tenantId: scope.tenantId })
      )
      if (Option.isNone(stored)) return yield* new NotFound({ message: "There is no such tenant." })
      return stored.value
    })

    /** The tenant's subscription and its credits, which are used after the turns of the period. */
    const get = Effect.fn("Subscriptions.get")(function* (scope: TenantScope) {
      const found = yield* store.find(scope)
      if (Option.isNone(found)) return yield* new NotFound({ message: "There is no such tenant." })
      return { subscription: found.value, credits: yield* store.credits(scope) }
    })

    return { put, get } as const
  })
}) {}
