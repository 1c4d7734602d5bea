/** Plans, budgets, rate limits and usage. */
import * as Layer from "effect/Layer"
import { BillingEventStore } from "../../store/billing/BillingEvents.ts"
import { BudgetStore } from "../../store/billing/Budgets.ts"
import { EntitlementStore } from "../../store/billing/Entitlements.ts"
import { OtherModelCallStore } from "../../store/billing/OtherModelCalls.ts"
import { StorageStore } from "../../store/billing/Storage.ts"
import { SubscriptionStore } from "../../store/billing/Subscriptions.ts"
import { UsageStore } from "../../store/billing/Usage.ts"
import { Billing } from "../../usecases/billing/Billing.ts"
import { Budgets } from "../../usecases/billing/Budgets.ts"
import { RateLimits } from "../../usecases/billing/RateLimits.ts"
import { StorageCount } from "../../usecases/billing/StorageCount.ts"
import { Subscriptions } from "../../usecases/billing/Subscriptions.ts"
import { UsageReport } from "../../usecases/billing/UsageReport.ts"

export const stores = Layer.mergeAll(
  BillingEventStore.Default,
  BudgetStore.Default,
  EntitlementStore.Default,
  OtherModelCallStore.Default,
  StorageStore.Default,
  SubscriptionStore.Default,
  UsageStore.Default
)

export const layer = Layer.mergeAll(
  Billing.Default,
  Budgets.Default,
  RateLimits.Default,
  StorageCount.Default,
  Subscriptions.Default,
  UsageReport.Default
)
