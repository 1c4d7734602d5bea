/** Answers that used passages that have since changed or been removed, and their replay. */
import type { ImpactAnswer as Answer, ImpactPage, ReplayImpact } from "../../../../domain/knowledge/Impact.ts"
import type { OneExperiment } from "../../../../http/hosted/agents/ExperimentsApi.ts"
import { call, pagesOf } from "../Client.ts"

export type ImpactAnswer = typeof Answer.Encoded

/** The most frequent first. */
export const impact = (agentId: string) =>
  pagesOf<typeof ImpactPage.Encoded>(["agents", agentId, "impact"], `/api/agents/${agentId}/impact`)

/** Returns at once. The most frequent answers are replayed in the background, each once. */
export const replayImpact = (agentId: string) =>
  call<typeof OneExperiment.Encoded, typeof ReplayImpact.Encoded>(
    "POST",
    `/api/agents/${agentId}/impact/replay`,
    { body: {} }
  ).then((data) => data.experiment)
