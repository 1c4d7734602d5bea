/** Applies events of the billing provider. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { BillingProvider } from "../../capabilities/BillingProvider.ts"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Subscription } from "../../domain/agents/Agent.ts"
import {
  type BillingEvent,
  creditsOf,
  type Plans,
  type SubscriptionState,
  subscriptionStateOf
} from "../../domain/billing/Billing.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { BillingEventStore } from "../../store/billing/BillingEvents.ts"
import { SubscriptionStore } from "../../store/billing/Subscriptions.ts"

/** The configured plans, and the plan of tenants without a paid one. */
export class PlanTable extends Context.Tag("usecases/PlanTable")<
  PlanTable,
  { readonly plans: Plans; readonly defaultPlan: string }
>() {}

/** Time-out of the database. The provider's own time-out is a little longer; it then sends the event again. */
const databaseTimeout = "15 seconds"

const notApplied = () => new ServiceUnavailable({ message: "The event could not be applied. Send it again." })

/** True when the new event changes the result. An event older than the deciding ones changes nothing. */
const isChanged = (before: Option.Option<SubscriptionState>, after: SubscriptionState) =>
  Option.match(before, {
    onNone: () => true,
    onSome: ({ decidedBy, status }) => status !== after.status || decidedBy.join() !== after.decidedBy.join()
  })

export class Billing extends Effect.Service<Billing>()("usecases/billing/Billing", {
  effect: Effect.gen(function* () {
    const provider = yield* BillingProvider
    const events = yield* BillingEventStore
    const subscriptions = yield* SubscriptionStore
    const keyStore = yield* KeyStore
    const sql = yield* SqlClient.SqlClient
    const { defaultPlan, plans } = yield* PlanTable

    const put = Effect.fn("Billing.put")(function* (scope: TenantScope, state: SubscriptionState) {
      if (state.plan === "keep") return yield* subscriptions.setStatus(scope, state.status)
      const plan = state.plan ?? defaultPlan
      const entitlements = plans.get(plan)
      if (entitlements === undefined) {
        return yield* Effect.logWarning("A subscription is on a plan that SPOKE_PLANS no longer has", scope)
      }
      const { period, status } = state
      yield* subscriptions.put(scope, Subscription.make({ plan, status, period, entitlements }))
    })

    /** Applies `event` to one of the tenants that it concerns. */
    const applyTo = Effect.fn("Billing.applyTo")(function* (scope: TenantScope, event: BillingEvent) {
      const all = yield* events.of(scope)
      if (event.fact._tag === "Purchase" || event.fact._tag === "Refund") {
        return yield* events.grant(scope, creditsOf(all, scope.tenantId))
      }
      const before = all.filter(({ id }) => id !== event.id)
      const after = subscriptionStateOf(all, scope.tenantId)
      if (Option.isSome(after) && isChanged(subscriptionStateOf(before, scope.tenantId), after.value)) {
        yield* put(scope, after.value)
      }
    })

    /** Why the event is ignored, or null. An ignored event is not stored, so that it can be sent again. */
    const reasonToIgnore = Effect.fn("Billing.reasonToIgnore")(function* ({ fact, tenantId }: BillingEvent) {
      if (tenantId !== null && !(yield* events.exists({ tenantId }))) return "its tenant does not exist"
      return fact._tag === "Subscription" && !fact.ended && !plans.has(fact.plan ?? "")
        ? "its plan is not in SPOKE_PLANS"
        : null
    })

    /** The tenants that have changed; none for a repeated event. */
    const apply = (event: BillingEvent) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const reason = yield* reasonToIgnore(event)
          if (reason !== null) {
            yield* Effect.logWarning("A billing event was ignored", { eventId: event.id, reason })
            return []
          }
          if (!(yield* events.claim(event))) return []
          const tenants = yield* events.tenantsOf(event.object)
          yield* Effect.forEach(tenants, (scope) => applyTo(scope, event), { discard: true })
          return tenants
        })
      )

    /**
     * Applies a webhook's raw body. Fails with INVALID_SIGNATURE, VALIDATION_ERROR, NOT_CONFIGURED, or
     * SERVICE_UNAVAILABLE when nothing was applied. Events without a meaning here are accepted and ignored.
     */
    const receive = Effect.fn("Billing.receive")(function* (body: Uint8Array, signature: string | undefined) {
      const event = yield* provider.read(body, signature)
      if (Option.isNone(event)) return { received: true } as const
      const tenants = yield* apply(event.value).pipe(
        Effect.timeout(databaseTimeout),
        Effect.catchAllCause((cause) =>
          Effect.zipRight(Effect.logError("A billing event could not be applied", cause), notApplied())
        )
      )
      yield* Effect.forEach(tenants, (scope) => keyStore.invalidate(scope), { discard: true })
      return { received: true } as const
    })

    return { receive } as const
  })
}) {}
