/** The execution trace of one turn. */
import * as Schema from "effect/Schema"
import { Cost } from "../billing/Cost.ts"
import { ChunkId, ConversationId, DocumentId, MessageId, RunId, SourceId } from "../Ids.ts"

export const RunStatus = Schema.Literal("running", "complete", "failed")
export type RunStatus = typeof RunStatus.Type

export const RunEventType = Schema.Literal(
  "run.started",
  "retrieval.completed",
  "model.completed",
  "tool.started",
  "tool.completed",
  "tool.failed",
  "run.completed",
  "run.failed"
)
export type RunEventType = typeof RunEventType.Type

/** Why a model provider returned no reply. It contains nothing of a key or a request. */
export const ProviderProblem = Schema.Literal(
  "key_refused",
  "quota_spent",
  "rate_limited",
  "model_unknown",
  "request_refused",
  "unreachable",
  "timed_out",
  "answer_broken"
)
export type ProviderProblem = typeof ProviderProblem.Type

/**
 * Why a run failed, in the payload of `run.failed` for operators. `code` is the caller's error code, or `TAKEN_OVER` or
 * {@link processStopped}. `provider` is set if the model's provider was the reason.
 */
export const RunFailure = Schema.Struct({ code: Schema.String, provider: Schema.NullOr(ProviderProblem) })
export type RunFailure = typeof RunFailure.Type

/** Failure code, in the payload of `run.failed`, of a run whose process stopped. */
export const processStopped = "PROCESS_STOPPED"

/** One event of a run. `payload` is for operators; credentials are already redacted. */
export const RunEvent = Schema.Struct({
  id: Schema.String,
  runId: RunId,
  sequence: Schema.Int,
  type: RunEventType,
  status: RunStatus,
  label: Schema.String,
  timestamp: Schema.DateTimeUtc,
  payload: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Unknown }), { exact: true })
})
export type RunEvent = typeof RunEvent.Type

const endUserLabels: Record<RunEventType, string> = {
  "run.started": "Started",
  "retrieval.completed": "Searched the knowledge base",
  "model.completed": "Wrote a reply",
  "tool.started": "Using a tool",
  "tool.completed": "Used a tool",
  "tool.failed": "A tool did not answer",
  "run.completed": "Done",
  "run.failed": "Failed"
}

/** The end user's view of an event: a neutral label and no payload. */
export const redactedForEndUser = ({ payload: _, ...event }: RunEvent): RunEvent => ({
  ...event,
  label: endUserLabels[event.type]
})

/** A passage that the model was shown, unchanged even if the source was changed or deleted since. */
export const RunPassage = Schema.Struct({
  /** The number by which the reply cites it. */
  index: Schema.Int,
  sourceId: SourceId,
  sourceName: Schema.String,
  documentId: DocumentId,
  chunkId: ChunkId,
  title: Schema.String,
  heading: Schema.String,
  url: Schema.String,
  text: Schema.String,
  score: Schema.Number
})
export type RunPassage = typeof RunPassage.Type

/** One page of a run's trace, `data` of `GET /v1/agent-runs/:runId`. */
export const RunTrace = Schema.Struct({
  id: RunId,
  status: RunStatus,
  conversationId: Schema.NullOr(ConversationId),
  messageId: Schema.NullOr(MessageId),
  /** The agent's version that the turn used. Null for runs from before versions existed. */
  agentVersion: Schema.NullOr(Schema.Int),
  /** Null until the run has ended, and for runs from before costs were stored. */
  cost: Schema.NullOr(Cost),
  startedAt: Schema.DateTimeUtc,
  completedAt: Schema.NullOr(Schema.DateTimeUtc),
  events: Schema.Array(RunEvent),
  /** Passages that the model was shown, on every page. Empty while the run is active. */
  passages: Schema.Array(RunPassage),
  hasMore: Schema.Boolean,
  nextCursor: Schema.NullOr(Schema.String)
})
export type RunTrace = typeof RunTrace.Type
