/** Experiments: runs of an agent's test cases against a version, and the thresholds for publishing. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query"
import type {
  Experiment as Declared,
  PublishThreshold,
  StartExperiment
} from "../../../domain/agents/Experiment.ts"
import type {
  ExperimentPage,
  ExperimentResultPage,
  OneExperiment,
  OneThreshold,
  ReportedExperiment
} from "../../../http/hosted/agents/ExperimentsApi.ts"
import { ApiError, call, firstPage, pagesOf } from "./Client.ts"

export type Experiment = typeof Declared.Encoded
export type ExperimentResult = (typeof ExperimentResultPage.Encoded)["results"][number]
export type Threshold = typeof PublishThreshold.Encoded

/** Polling interval while an experiment is running. */
const pollIntervalMs = 2_000

export const isOpen = ({ status }: Experiment): boolean => status === "queued" || status === "running"

export const experiments = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "experiments"],
    queryFn: ({ pageParam, signal }) =>
      call<typeof ExperimentPage.Encoded>("GET", `/api/agents/${agentId}/experiments`, {
        query: { limit: 20, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.experiments.some(isOpen)) === true ? pollIntervalMs : false
  })

export const experimentReport = (id: string) =>
  queryOptions({
    queryKey: ["experiments", id],
    queryFn: ({ signal }) =>
      call<typeof ReportedExperiment.Encoded>("GET", `/api/experiments/${id}`, { signal }),
    refetchInterval: ({ state }) =>
      state.data !== undefined && isOpen(state.data.experiment) ? pollIntervalMs : false
  })

export const experimentResults = (id: string) =>
  pagesOf<typeof ExperimentResultPage.Encoded>(
    ["experiments", id, "results"],
    `/api/experiments/${id}/results`,
    { limit: 50 }
  )

export const startExperiment = (agentId: string, body: typeof StartExperiment.Encoded) =>
  call<typeof OneExperiment.Encoded, typeof StartExperiment.Encoded>(
    "POST",
    `/api/agents/${agentId}/experiments`,
    { body }
  )

export const cancelExperiment = (id: string) => call("POST", `/api/experiments/${id}/cancel`)
export const deleteExperiment = (id: string) => call("DELETE", `/api/experiments/${id}`)

export const threshold = (agentId: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "threshold"],
    queryFn: ({ signal }) =>
      call<typeof OneThreshold.Encoded>("GET", `/api/agents/${agentId}/threshold`, { signal }).then(
        (data) => data.threshold
      )
  })

export const setThreshold = (agentId: string, body: Threshold) =>
  call<typeof OneThreshold.Encoded, Threshold>("PUT", `/api/agents/${agentId}/threshold`, { body })

/** True if a version was not published because its test cases miss the threshold. */
export const isBlockedByTestCases = (problem: unknown): boolean =>
  problem instanceof ApiError && problem.code === "CONFLICT" && problem.details["gate"] === true
