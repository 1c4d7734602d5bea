/** What the tenant has used of its period. */
import { queryOptions } from "@tanstack/react-query"
import type { DayUsage as Day, TenantUsage } from "../../../domain/billing/Usage.ts"
import { call } from "./Client.ts"

export type DayUsage = typeof Day.Encoded
export type Usage = typeof TenantUsage.Encoded

export const usage = queryOptions({
  queryKey: ["usage"],
  queryFn: ({ signal }) => call<Usage>("GET", "/api/usage", { signal })
})
