/** Public view of background jobs. */
import * as Schema from "effect/Schema"
import { QueueJobId } from "../Ids.ts"

export const QueueName = Schema.Literal(
  "ingestion",
  "embedding",
  "artifact-cleanup",
  "channel-inbound",
  "channel-outbound",
  "webhook-outbound",
  "experiments"
)
export type QueueName = typeof QueueName.Type

/** `waiting` jobs are due; `delayed` jobs are due later. */
export const JobState = Schema.Literal("waiting", "active", "delayed", "completed", "failed")
export type JobState = typeof JobState.Type

/** The public fields of a job, without its payload. */
export const JobSummary = Schema.Struct({
  id: QueueJobId,
  state: JobState,
  attempts: Schema.Int,
  /** Null if no attempt has failed. */
  lastError: Schema.NullOr(Schema.String),
  createdAt: Schema.DateTimeUtc
})
export type JobSummary = typeof JobSummary.Type

/** Number of jobs of a queue in each state. */
export const QueueCounts = Schema.Struct({
  name: QueueName,
  waiting: Schema.Int,
  active: Schema.Int,
  delayed: Schema.Int,
  completed: Schema.Int,
  failed: Schema.Int
})
export type QueueCounts = typeof QueueCounts.Type
