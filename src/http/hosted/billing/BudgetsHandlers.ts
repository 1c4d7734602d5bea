import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { Budgets } from "../../../usecases/billing/Budgets.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, auditedRemoval } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"budgets">) =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    return handlers
      .handle("list", ({ urlParams }) =>
        listPage("budgets", { route: "/api/budgets" }, urlParams, budgets.list)
      )
      .handle("create", ({ payload }) =>
        audited("budget.create", (user) => budgets.create(user, payload), idOf).pipe(Effect.bindTo("budget"))
      )
      .handle("find", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => budgets.find(user, path.id)).pipe(Effect.bindTo("budget"))
      )
      .handle("patch", ({ headers, path, payload }) =>
        audited(
          "budget.update",
          (user) => budgets.patch(user, path.id, payload, expectedVersion(headers)),
          idOf
        ).pipe(Effect.bindTo("budget"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("budget.delete", id, budgets.remove))
  })

export const BudgetsHandlers = HttpApiBuilder.group(Api, "budgets", group)
export const ManagedBudgetsHandlers = HttpApiBuilder.group(Api, "managedBudgets", group)
