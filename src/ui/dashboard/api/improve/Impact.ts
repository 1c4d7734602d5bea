/** Answers that used passages that have since changed or been removed, and their replay. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import type { ImpactAnswer as Answer, ImpactPage, ReplayImpact } from "../../../../domain/knowledge/Impact.ts"
import type { OneExperiment } from "../../../../http/hosted/agents/ExperimentsApi.ts"
import { call, firstPage } from "../Client.ts"

export type ImpactAnswer = typeof Answer.Encoded

/** The most frequent first. */
export const impact = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "impact"],
    queryFn: ({ pageParam, signal }) =>
      call<typeof ImpactPage.Encoded>("GET", `/api/agents/${agentId}/impact`, {
        query: { cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

/** Returns at once. The most frequent answers are replayed in the background, each once. */
export const replayImpact = (agentId: string) =>
  call<typeof OneExperiment.Encoded, typeof ReplayImpact.Encoded>(
    "POST",
    `/api/agents/${agentId}/impact/replay`,
    { body: {} }
  ).then((data) => data.experiment)
