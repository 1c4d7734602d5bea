/** Background jobs, as far as they may be told about. */
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

/** `waiting` jobs are due, `delayed` ones are not yet. */
export const JobState = Schema.Literal("waiting", "active", "delayed", "completed", "failed")
export type JobState = typeof JobState.Type

/** What may be told about a job: never its payload. */
export const JobSummary = Schema.Struct({
  id: QueueJobId,
  state: JobState,
  attempts: Schema.Int,
  /** Null when no attempt has failed. */
  lastError: Schema.NullOr(Schema.String),
  createdAt: Schema.DateTimeUtc
})
export type JobSummary = typeof JobSummary.Type

/** How many jobs of a queue are in each state. */
export const QueueCounts = Schema.Struct({
  name: QueueName,
  waiting: Schema.Int,
  active: Schema.Int,
  delayed: Schema.Int,
  completed: Schema.Int,
  failed: Schema.Int
})
export type QueueCounts = typeof QueueCounts.Type
