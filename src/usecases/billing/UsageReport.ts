/** Usage of an agent, and of its tenant, in the current period. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { sumOfAll } from "../../domain/billing/Cost.ts"
import type { OtherCallsByDay } from "../../domain/billing/Usage.ts"
import { internalError } from "../../domain/Errors.ts"
import { BudgetStore, maxBudgets } from "../../store/billing/Budgets.ts"
import { StorageStore } from "../../store/billing/Storage.ts"
import { UsageStore } from "../../store/billing/Usage.ts"

/** Sums of each kind, in the order of `rows`. */
const sumsByKind = (rows: ReadonlyArray<Omit<OtherCallsByDay, "days"> & { readonly date: string }>) =>
  [...new Set(rows.map(({ kind }) => kind))].map((kind): OtherCallsByDay => {
    const days = rows.flatMap(({ kind: own, ...day }) => (own === kind ? [day] : []))
    const sum = (of: (day: (typeof days)[number]) => number) =>
      days.reduce((total, day) => total + of(day), 0)
    return {
      kind,
      calls: sum(({ calls }) => calls),
      tokens: { input: sum(({ tokens }) => tokens.input), output: sum(({ tokens }) => tokens.output) },
      cost: sumOfAll(days.map(({ cost }) => cost)),
      days
    }
  })

export class UsageReport extends Effect.Service<UsageReport>()("usecases/billing/UsageReport", {
  effect: Effect.gen(function* () {
    const store = yield* UsageStore
    const budgetStore = yield* BudgetStore
    const storageStore = yield* StorageStore

    /** The agent's usage. A key whose agent is missing gets INTERNAL_ERROR, never another agent's figures. */
    const ofAgent = Effect.fn("UsageReport.ofAgent")(function* (scope: AgentScope) {
      const found = yield* store.ofAgent(scope)
      if (Option.isSome(found)) return found.value
      yield* Effect.logError("Usage was asked for an agent that is missing", { agentId: scope.agentId })
      return yield* internalError()
    })

    /** Usage of the tenant: totals, budgets, and figures by model, agent and day. */
    const ofTenant = Effect.fn("UsageReport.ofTenant")(function* (scope: TenantScope) {
      const found = yield* store.ofTenant(scope)
      if (Option.isNone(found)) return yield* internalError()
      const totals = found.value
      const ofAgents = yield* store.otherByAgent(scope, totals.period.start)
      const agents = (yield* store.byAgent(scope, totals.period.start)).map((agent) => ({
        ...agent,
        otherCalls: ofAgents.flatMap(({ agentId, ...calls }) => (agentId === agent.agentId ? [calls] : []))
      }))
      const deletedAgents = yield* store.ofDeletedAgents(scope, totals.period.start)
      const otherCalls = sumsByKind(yield* store.otherByDay(scope, totals.period.start))
      const days = yield* store.byDay(scope, totals.period)
      const models = yield* store.byModel(scope, totals.period.start)
      const cost = sumOfAll(models.map((model) => model.cost))
      const { rows: budgets } = yield* budgetStore.page(scope, { limit: maxBudgets })
      const storage = yield* storageStore.find(scope)
      return { ...totals, cost, storage, budgets, models, agents, deletedAgents, days, otherCalls }
    })

    return { ofAgent, ofTenant } as const
  })
}) {}
