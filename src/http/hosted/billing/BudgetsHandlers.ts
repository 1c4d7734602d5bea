import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Budgets } from "../../../usecases/billing/Budgets.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"budgets">) =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams }) =>
        listPage("budgets", { route: "/api/budgets" }, urlParams, budgets.list)
      )
      .handle("create", ({ payload }) =>
        Effect.gen(function* () {
          const change = budgets.create(yield* CurrentUser, payload)
          return { budget: yield* audit.change(yield* actor, "budget.create", change, ({ id }) => id) }
        })
      )
      .handle("find", ({ path }) =>
        Effect.gen(function* () {
          return { budget: yield* budgets.find(yield* CurrentUser, path.id) }
        })
      )
      .handle("patch", ({ headers, path, payload }) =>
        Effect.gen(function* () {
          const change = budgets.patch(yield* CurrentUser, path.id, payload, expectedVersion(headers))
          return { budget: yield* audit.change(yield* actor, "budget.update", change, ({ id }) => id) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "budget.delete", id, budgets.remove))
  })

export const BudgetsHandlers = HttpApiBuilder.group(Api, "budgets", group)
export const ManagedBudgetsHandlers = HttpApiBuilder.group(Api, "managedBudgets", group)
