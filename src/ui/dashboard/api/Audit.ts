/** Who did what. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import { call, firstPage } from "./Client.ts"

export interface AuditEntry {
  readonly id: string
  readonly at: string
  readonly actor: { readonly type: "key" | "user" | "operator"; readonly id: string }
  readonly action: string
  readonly target: string
  readonly requestId: string
}

interface AuditPage {
  readonly entries: ReadonlyArray<AuditEntry>
  readonly nextCursor: string | null
}

export const audit = infiniteQueryOptions({
  queryKey: ["audit"],
  queryFn: ({ pageParam, signal }) =>
    call<AuditPage>("GET", "/api/audit", { query: { limit: 50, cursor: pageParam }, signal }),
  initialPageParam: firstPage(),
  getNextPageParam: ({ nextCursor }) => nextCursor
})
