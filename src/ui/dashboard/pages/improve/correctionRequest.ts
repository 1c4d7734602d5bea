/** The request that creates a correction for a group of insights. */
import type { CreateCorrection } from "../../../../domain/agents/Correction.ts"
import type { InsightGroup } from "../../../../domain/conversations/Insights.ts"

/** The period of the report. Groups of another period may differ. */
export interface ReportPeriod {
  readonly from: string
  readonly to: string
}

export interface CorrectionRequest {
  readonly agentId: string
  readonly body: typeof CreateCorrection.Encoded
}

/**
 * A correction belongs to one agent. In a report on one agent (`agentId`), it covers the whole group. In a report on
 * all agents, it covers the examples of the agent that was asked last. Null for a group without examples.
 */
export const correctionRequestOf = (
  { examples, id }: typeof InsightGroup.Encoded,
  agentId: string | undefined,
  { from, to }: ReportPeriod
): CorrectionRequest | null => {
  if (agentId !== undefined) return { agentId, body: { group: id, from, to } }
  const [newest] = examples
  if (newest === undefined) return null
  const runIds = examples.filter((one) => one.agentId === newest.agentId).map(({ runId }) => runId)
  return { agentId: newest.agentId, body: { runIds } }
}
