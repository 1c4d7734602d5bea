/** The audit trail. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import type { AuditEntry as Declared } from "../../../domain/accounts/Audit.ts"
import type { AuditPage } from "../../../http/hosted/accounts/AuditApi.ts"
import { call, firstPage } from "./Client.ts"

export type AuditEntry = typeof Declared.Encoded

export const audit = infiniteQueryOptions({
  queryKey: ["audit"],
  queryFn: ({ pageParam, signal }) =>
    call<typeof AuditPage.Encoded>("GET", "/api/audit", { query: { limit: 50, cursor: pageParam }, signal }),
  initialPageParam: firstPage(),
  getNextPageParam: ({ nextCursor }) => nextCursor
})
