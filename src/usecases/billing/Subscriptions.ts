/** Subscriptions that the operator sets for tenants. */
import * as Effect from "effect/Effect"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import type { PutSubscription, TenantScope } from "../../domain/accounts/Account.ts"
import { Subscription } from "../../domain/agents/Agent.ts"
import { orNoSuch } from "../../domain/Errors.ts"
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
      return yield* store
        .put(scope, subscription)
        .pipe(Effect.ensuring(keyStore.invalidate({ tenantId: scope.tenantId })), orNoSuch("tenant"))
    })

    /** The tenant's subscription and its credits, which are used after the turns of the period. */
    const get = Effect.fn("Subscriptions.get")(function* (scope: TenantScope) {
      const subscription = yield* store.find(scope).pipe(orNoSuch("tenant"))
      return { subscription, credits: yield* store.credits(scope) }
    })

    return { put, get } as const
  })
}) {}
