/** The tenant's agents. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query"
import type { RunFailure } from "../text/useFailure.ts"
import { call, firstPage } from "./Client.ts"

export interface Agent {
  readonly id: string
  readonly name: string
  readonly instructions: string
  readonly model: string | null
  readonly greeting: string | null
  readonly retrieval: { readonly topK: number; readonly minScore: number | null }
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

export interface AgentPatch {
  readonly name?: string
  readonly instructions?: string | null
  readonly model?: string | null
  readonly greeting?: string | null
  readonly retrieval?: { readonly topK?: number; readonly minScore?: number | null } | null
}

interface AgentPage {
  readonly agents: ReadonlyArray<Agent>
  readonly nextCursor: string | null
}

export const agents = infiniteQueryOptions({
  queryKey: ["agents"],
  queryFn: ({ pageParam, signal }) =>
    call<AgentPage>("GET", "/api/agents", { query: { limit: 100, cursor: pageParam }, signal }),
  initialPageParam: firstPage(),
  getNextPageParam: ({ nextCursor }) => nextCursor
})

export const agent = (id: string) =>
  queryOptions({
    queryKey: ["agents", id],
    queryFn: ({ signal }) =>
      call<{ readonly agent: Agent }>("GET", `/api/agents/${id}`, { signal }).then((data) => data.agent)
  })

export const createAgent = (name: string, instructions: string) =>
  call<{ readonly agent: Agent }>("POST", "/api/agents", {
    body: instructions === "" ? { name } : { name, instructions }
  })

export const patchAgent = (id: string, version: number, patch: AgentPatch) =>
  call<{ readonly agent: Agent }>("PATCH", `/api/agents/${id}`, { body: patch, version })

/** How the agent's last turn went; null before the first. */
interface LastRun {
  readonly runId: string
  readonly at: string
  readonly failure: RunFailure | null
}

/** Milliseconds between two looks. */
const lookEvery = 10_000

export const lastRun = (id: string) =>
  queryOptions({
    queryKey: ["agents", id, "last-run"],
    queryFn: ({ signal }) =>
      call<{ readonly run: LastRun | null }>("GET", `/api/agents/${id}/last-run`, { signal }).then(
        ({ run }) => run
      ),
    refetchInterval: lookEvery
  })

export const deleteAgent = (id: string) => call("DELETE", `/api/agents/${id}`)
