/** Retention periods of the tenant. */
import { queryOptions } from "@tanstack/react-query"
import type { PatchRetention, Retention as Limits } from "../../../domain/accounts/Retention.ts"
import type { RetentionAnswer } from "../../../http/hosted/accounts/RetentionApi.ts"
import { call } from "./Client.ts"

export type Retention = typeof Limits.Encoded

export const retention = queryOptions({
  queryKey: ["retention"],
  queryFn: ({ signal }) => call<typeof RetentionAnswer.Encoded>("GET", "/api/retention", { signal })
})

export const setRetention = (body: typeof PatchRetention.Encoded) =>
  call<typeof RetentionAnswer.Encoded, typeof PatchRetention.Encoded>("PATCH", "/api/retention", { body })
