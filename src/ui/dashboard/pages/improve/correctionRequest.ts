/** The data for a correction of a group. */
import type { CreateCorrection } from "../../../../domain/agents/Correction.ts"
import type { InsightGroup } from "../../../../domain/conversations/Insights.ts"

/** The period of the group's report, because another period may have other groups. */
export interface ReportTime {
  readonly from: string
  readonly to: string
}

export interface Correctable {
  readonly agentId: string
  readonly body: typeof CreateCorrection.Encoded
}

/**
 * The whole group, where the report is of one agent; of a report on all agents the examples of the agent that was asked last,
 * because a correction is one agent's. Null for a group without examples.
 */
export const correctableOf = (
  { examples, id }: typeof InsightGroup.Encoded,
  agentId: string | undefined,
  { from, to }: ReportTime
): Correctable | null => {
  if (agentId !== undefined) return { agentId, body: { group: id, from, to } }
  const [newest] = examples
  if (newest === undefined) return null
  const runIds = examples.filter((one) => one.agentId === newest.agentId).map(({ runId }) => runId)
  return { agentId: newest.agentId, body: { runIds } }
}
