/** Usage of the tenant in its period, and budgets. */
import { queryOptions } from "@tanstack/react-query"
import type { Budget as Declared, CreateBudget, PatchBudget } from "../../../domain/billing/Budget.ts"
import type { DayUsage as Day, TenantUsage } from "../../../domain/billing/Usage.ts"
import { call } from "./Client.ts"

export type DayUsage = typeof Day.Encoded
export type Usage = typeof TenantUsage.Encoded
export type Budget = typeof Declared.Encoded

/** Includes the budgets. */
export const usage = queryOptions({
  queryKey: ["usage"],
  queryFn: ({ signal }) => call<Usage>("GET", "/api/usage", { signal })
})

const budgets = "/api/budgets"

export const createBudget = (body: typeof CreateBudget.Encoded) =>
  call<unknown, typeof CreateBudget.Encoded>("POST", budgets, { body })

export const setLimit = ({ id, version }: Budget, limitNanoUsd: number) =>
  call<unknown, typeof PatchBudget.Encoded>("PATCH", `${budgets}/${id}`, { body: { limitNanoUsd }, version })

export const deleteBudget = (id: string) => call("DELETE", `${budgets}/${id}`)
