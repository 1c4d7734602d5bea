/** Durable background work: enqueued in the caller's transaction, leased to one worker, retried, kept by count. */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { QueueJobId } from "../domain/Ids.ts"
import type { JobState, JobSummary, QueueCounts, QueueName } from "../domain/knowledge/Job.ts"
import type { JsonObject } from "../domain/Text.ts"

export interface QueuePolicy {
  readonly attempts: number
  /** Before the second attempt; doubled for each one after it. */
  readonly backoff: Duration.DurationInput
  /** No longer than this; without it there is no bound. */
  readonly maxBackoff?: Duration.DurationInput
  readonly keepCompleted: number
  readonly keepFailed: number
  /**
   * A worker that does not renew within this loses the job to another. It renews every third of it for as long as the job
   * takes, so this is how long a job of a dead worker waits, however long jobs take.
   */
  readonly lease: Duration.DurationInput
  /**
   * How long a running job may take when its worker stops, before it is interrupted and given back. What goes on where it
   * was given back need not be waited for; a job that has begun to answer or to send is brought to its end.
   */
  readonly drain: Duration.DurationInput
  /** The part of a worker's places that the jobs of one owner may take, one at least; all of them by default. */
  readonly ownerShare?: number
  /** The part that the owners of one group may take together: those whose names begin alike, up to a slash. All by default. */
  readonly groupShare?: number
}

/** How often each queue tries, how it stops, and how much of a worker one owner may have. */
export const policies = {
  ingestion: {
    attempts: 3,
    backoff: "2 seconds",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "30 seconds",
    drain: "1 second",
    ownerShare: 1 / 2
  },
  embedding: {
    attempts: 10,
    backoff: "2 seconds",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "30 seconds",
    drain: "1 second",
    ownerShare: 1 / 2
  },
  "artifact-cleanup": {
    attempts: 20,
    backoff: "2 seconds",
    maxBackoff: "1 hour",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "30 seconds",
    drain: "1 second",
    ownerShare: 1 / 2
  },
  "channel-inbound": {
    attempts: 5,
    backoff: "2 seconds",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "20 seconds",
    drain: "30 seconds",
    ownerShare: 1 / 2
  },
  "channel-outbound": {
    attempts: 3,
    backoff: "2 seconds",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "20 seconds",
    drain: "30 seconds",
    ownerShare: 2 / 3
  },
  // The handler says when the next attempt is due, and gives up by time.
  "webhook-outbound": {
    attempts: 1_000_000,
    backoff: "1 second",
    maxBackoff: "1 second",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "20 seconds",
    drain: "15 seconds",
    ownerShare: 1 / 8,
    groupShare: 1 / 4
  },
  // It goes on behind the last question that was answered.
  experiments: {
    attempts: 10,
    backoff: "2 seconds",
    maxBackoff: "1 minute",
    keepCompleted: 100,
    keepFailed: 500,
    lease: "30 seconds",
    drain: "1 second",
    ownerShare: 1 / 2
  }
} as const satisfies Record<QueueName, QueuePolicy>

/** The queue itself could not be reached. */
export class JobQueueError extends Schema.TaggedError<JobQueueError>()("JobQueueError", {
  message: Schema.String
}) {}

/**
 * What a handler fails with: `message` is kept as the attempt's error, `fatal` ends the job without another attempt, and
 * the next attempt comes no sooner than `retryAfter`.
 */
export class JobFailure extends Schema.TaggedError<JobFailure>()("JobFailure", {
  message: Schema.String,
  fatal: Schema.Boolean,
  /** True for a failure that is part of normal operation: it is not logged as a warning. */
  expected: Schema.optionalWith(Schema.Boolean, { exact: true }),
  retryAfter: Schema.optionalWith(Schema.DurationFromMillis, { exact: true })
}) {}

export interface QueueJob {
  readonly id: QueueJobId
  readonly queue: QueueName
  readonly payload: JsonObject
  /** 1 for the first attempt. */
  readonly attempt: number
  /** True when a failure now is final. */
  readonly lastAttempt: boolean
}

export interface EnqueueOptions {
  /** Not before this long from now. */
  readonly delay?: Duration.DurationInput
  /** Jobs of one queue with the same key run one at a time, in order. */
  readonly serialKey?: string
  /** The owner of the job; owners are served in turns. By default the owner of the enqueuing fiber. */
  readonly owner?: string
}

/** One of the jobs that are enqueued together. */
export interface JobRequest {
  readonly payload: JsonObject
  readonly options?: EnqueueOptions
}

/** Jobs as a statement of the caller's puts them into `queue_jobs` itself, in one with what they are about. */
export interface PreparedJobs {
  /** In the order of the requests. */
  readonly ids: ReadonlyArray<QueueJobId>
  readonly maxAttempts: number
  /** The notification that the statement sends when it inserts any of them. */
  readonly notification: { readonly channel: string; readonly text: string }
  /** To be run after the statement. */
  readonly inserted: Effect.Effect<void>
}

export interface JobListing {
  readonly state?: JobState | undefined
  readonly limit: number
  /** The `next` of the page before. */
  readonly before?: string | undefined
}

export class JobQueue extends Context.Tag("capabilities/JobQueue")<
  JobQueue,
  {
    /** Joins the transaction of the caller: the job exists exactly when that commits. */
    readonly enqueue: (
      queue: QueueName,
      payload: JsonObject,
      options?: EnqueueOptions
    ) => Effect.Effect<QueueJobId, JobQueueError>
    /** {@link enqueue} for many jobs in one statement, all of them or none; they run, and their ids come, in this order. */
    readonly enqueueAll: (
      queue: QueueName,
      jobs: ReadonlyArray<JobRequest>
    ) => Effect.Effect<ReadonlyArray<QueueJobId>, JobQueueError>
    /** `count` jobs without a delay, for a statement of the caller's, in the transaction that it is called in, if in any. */
    readonly prepare: (queue: QueueName, count: number) => Effect.Effect<PreparedJobs>
    /**
     * Claims and runs jobs, those of their owners in turns and at most `concurrency` at once, until the scope closes; then takes no more and waits for the
     * running ones, as long as the policy allows. What still runs after that is interrupted and goes back to the queue
     * without losing an attempt. A defect of the handler counts as a failed attempt.
     *
     * A job runs at least once: it is repeated when its worker died, and its handler is interrupted when its lease was
     * lost. When the worker of the last attempt died, no handler is left to say so: then `onDead` runs (again, if need
     * be) before the job fails with the reason "worker died".
     */
    readonly work: <R>(
      queue: QueueName,
      concurrency: number,
      handler: (job: QueueJob) => Effect.Effect<void, JobFailure, R>,
      onDead?: (job: QueueJob) => Effect.Effect<void, never, R>
    ) => Effect.Effect<void, never, R | Scope.Scope>
    /** One row for each queue, none left out. `waiting` jobs are due, `delayed` ones are not yet. */
    readonly counts: Effect.Effect<ReadonlyArray<QueueCounts>, JobQueueError>
    /** Jobs of a queue, newest first; `next` continues the list and is null at its end. */
    readonly list: (
      queue: QueueName,
      listing: JobListing
    ) => Effect.Effect<
      { readonly jobs: ReadonlyArray<JobSummary>; readonly next: string | null },
      JobQueueError
    >
    /**
     * Has a failed job run again, with all its attempts; the errors of the earlier ones are kept. Any other is left as it
     * is (`retried` false); null when the queue has no such job.
     */
    readonly retry: (
      queue: QueueName,
      id: QueueJobId
    ) => Effect.Effect<{ readonly job: JobSummary; readonly retried: boolean } | null, JobQueueError>
  }
>() {}
