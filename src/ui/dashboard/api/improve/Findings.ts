/** Findings about an agent's sources, and the use of each source. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query"
import type {
  Finding as Declared,
  FindingKind as Kind,
  FindingPage,
  SourceValue as Value
} from "../../../../domain/knowledge/Finding.ts"
import { call, firstPage } from "../Client.ts"

export type Finding = typeof Declared.Encoded
export type FindingKind = typeof Kind.Encoded
type SourceValue = typeof Value.Encoded

/** Polling interval while passages are being compared. */
const pollIntervalMs = 5_000

/** The most important ones first. With `dismissed`, the dismissed ones. */
export const findings = (agentId: string, kind: FindingKind | undefined, dismissed: boolean) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "findings", kind, dismissed],
    queryFn: ({ pageParam, signal }) =>
      call<typeof FindingPage.Encoded>("GET", `/api/agents/${agentId}/findings`, {
        query: { kind, dismissed, limit: 20, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) => (state.data?.pages[0]?.isComplete === false ? pollIntervalMs : false)
  })

export const dismissFinding = (agentId: string, id: string) =>
  call("POST", `/api/agents/${agentId}/findings/${id}/dismiss`)

export const restoreFinding = (agentId: string, id: string) =>
  call("POST", `/api/agents/${agentId}/findings/${id}/restore`)

interface ValuePage {
  readonly sources: ReadonlyArray<SourceValue>
  readonly nextCursor: string | null
}

/** Maximum number of pages of sources. */
const maxPages = 50

/** All sources of the agent, because the exported file must be complete. `month` is YYYY-MM in UTC. */
export const sourceValues = (agentId: string, month: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "source-values", month],
    queryFn: async ({ signal }) => {
      const sources: Array<SourceValue> = []
      let cursor = firstPage()
      for (let page = 0; page < maxPages; page++) {
        const read: ValuePage = await call("GET", `/api/agents/${agentId}/source-values`, {
          query: { month, cursor },
          signal
        })
        sources.push(...read.sources)
        cursor = read.nextCursor
        if (cursor === null) break
      }
      return sources
    }
  })
