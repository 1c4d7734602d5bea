/** Cost limits for models, per tenant, agent and key. */
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  type BudgetId,
  type CreateBudget,
  newBudgetId,
  type PatchBudget
} from "../../domain/billing/Budget.ts"
import { Conflict, NotFound, noSuch, orNoSuch } from "../../domain/Errors.ts"
import { outdated } from "../../domain/Version.ts"
import { BudgetStore, maxBudgets } from "../../store/billing/Budgets.ts"

const noSuchOwner = () => new NotFound({ message: "There is no such agent or API key." })
const tooManyBudgets = () => new Conflict({ message: `There are already ${maxBudgets} budgets.` })
const budgetExists = () => new Conflict({ message: "This budget already exists. Change its limit instead." })

export class Budgets extends Effect.Service<Budgets>()("usecases/billing/Budgets", {
  effect: Effect.gen(function* () {
    const store = yield* BudgetStore

    const find = Effect.fn("Budgets.find")(function* (scope: TenantScope, id: BudgetId) {
      return yield* store.find(scope, id).pipe(orNoSuch("budget"))
    })

    /** Creates a budget. It counts the cost of later turns. */
    const create = Effect.fn("Budgets.create")(function* (scope: TenantScope, given: CreateBudget) {
      const id = yield* newBudgetId
      const outcome = yield* store.insert(scope, id, given)
      if (outcome === "missing") return yield* noSuchOwner()
      if (outcome === "full") return yield* tooManyBudgets()
      if (outcome === "taken") return yield* budgetExists()
      return yield* find(scope, id)
    })

    /** CONFLICT when `expected` is no longer the newest version. */
    const patch = Effect.fn("Budgets.patch")(function* (
      scope: TenantScope,
      id: BudgetId,
      { limitNanoUsd }: PatchBudget,
      expected: number | null = null
    ) {
      const found = yield* find(scope, id)
      const limit = limitNanoUsd ?? found.limitNanoUsd
      if (!(yield* store.setLimit(scope, id, limit, expected))) return yield* outdated(found.version)
      return yield* find(scope, id)
    })

    const remove = Effect.fn("Budgets.remove")(function* (scope: TenantScope, id: BudgetId) {
      if (!(yield* store.remove(scope, id))) return yield* noSuch("budget")
    })

    return { list: store.page, find, create, patch, remove } as const
  })
}) {}
