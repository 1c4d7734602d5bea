/** The tenant's agents. */
import { queryOptions } from "@tanstack/react-query"
import type { Agent as Declared, CreateAgent, PatchAgent } from "../../../domain/agents/Agent.ts"
import type { AgentPage, AgentProblems, OneAgent } from "../../../http/hosted/agents/AgentsApi.ts"
import type { AgentVersionPage, OneAgentVersion } from "../../../http/hosted/agents/AgentVersionsApi.ts"
import type { Models } from "../../../http/hosted/agents/ModelsApi.ts"
import type { LatestRun } from "../../../http/hosted/conversations/InboxViewApi.ts"
import { call, pagesOf } from "./Client.ts"
import { atLeast, type User } from "./Session.ts"

export type Agent = typeof Declared.Encoded

export const agents = pagesOf<typeof AgentPage.Encoded>(["agents"], "/api/agents", { limit: 100 })

export const agent = (id: string) =>
  queryOptions({
    queryKey: ["agents", id],
    queryFn: ({ signal }) =>
      call<typeof OneAgent.Encoded>("GET", `/api/agents/${id}`, { signal }).then((data) => data.agent)
  })

export const createAgent = (name: string, instructions: string) =>
  call<typeof OneAgent.Encoded, typeof CreateAgent.Encoded>("POST", "/api/agents", {
    body: instructions === "" ? { name } : { name, instructions }
  })

export const patchAgent = (id: string, version: number, patch: typeof PatchAgent.Encoded) =>
  call<typeof OneAgent.Encoded, typeof PatchAgent.Encoded>("PATCH", `/api/agents/${id}`, {
    body: patch,
    version
  })

export type AgentVersion = (typeof AgentVersionPage.Encoded)["versions"][number]

const versionPages = (id: string, queryKey: ReadonlyArray<string>, limit: number) =>
  pagesOf<typeof AgentVersionPage.Encoded>(queryKey, `/api/agents/${id}/versions`, { limit })

/** For the list of versions. Pages are small, because each row requests its version. */
export const agentVersions = (id: string) => versionPages(id, ["agents", id, "versions"], 20)

/** For a choice of all versions. */
export const allAgentVersions = (id: string) => versionPages(id, ["agents", id, "versions", "every"], 100)

/** Versions are immutable, so they are cached forever. */
export const agentVersion = (id: string, version: number) =>
  queryOptions({
    queryKey: ["agents", id, "version", version],
    queryFn: ({ signal }) =>
      call<typeof OneAgentVersion.Encoded>("GET", `/api/agents/${id}/versions/${version}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY
  })

/** `force` publishes even if the test cases miss the threshold. */
export const publishVersion = (id: string, version: number, force: boolean) =>
  call<typeof OneAgent.Encoded>("POST", `/api/agents/${id}/versions/${version}/publish`, {
    query: { force: force ? true : undefined }
  })

const pollIntervalMs = 10_000

/** The result of the agent's last turn; null before the first. */
export const lastRun = (id: string) =>
  queryOptions({
    queryKey: ["agents", id, "last-run"],
    queryFn: ({ signal }) =>
      call<typeof LatestRun.Encoded>("GET", `/api/agents/${id}/last-run`, { signal }).then(({ run }) => run),
    refetchInterval: pollIntervalMs
  })

export type AgentProblem = (typeof AgentProblems.Encoded)["problems"][number]

const problemsIntervalMs = 60_000

/** Channels, models and tools of agents that fail at the moment. Not for viewers. */
export const agentProblems = (user: User) =>
  queryOptions({
    queryKey: ["agent-problems"],
    queryFn: ({ signal }) =>
      call<typeof AgentProblems.Encoded>("GET", "/api/agent-problems", { signal }).then(
        ({ problems }) => problems
      ),
    enabled: atLeast(user.role, "agent"),
    refetchInterval: problemsIntervalMs
  })

/** Models change with the server's settings only. */
const modelsStaleMs = 600_000

/** The models that agents may use. */
export const models = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => call<typeof Models.Encoded>("GET", "/api/models", { signal }),
  staleTime: modelsStaleMs
})

export const deleteAgent = (id: string) => call("DELETE", `/api/agents/${id}`)
