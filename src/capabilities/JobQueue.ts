/**
 * Durable background jobs: enqueued in the caller's transaction, leased to one worker, retried, and pruned by count.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { QueueJobId } from "../domain/Ids.ts"
import type { JobState, JobSummary, QueueCounts, QueueName } from "../domain/knowledge/Job.ts"
import type { JsonObject } from "../domain/Text.ts"

export interface QueuePolicy {
  readonly attempts: number
  /** Delay before the second attempt, doubled for each further one. */
  readonly backoff: Duration.DurationInput
  /** Maximum delay; unbounded by default. */
  readonly maxBackoff?: Duration.DurationInput
  readonly keepCompleted: number
  readonly keepFailed: number
  /**
   * A worker that does not renew within this time loses the job to another. It renews at a third of it while the job
   * runs, and at least every ten seconds. So this is how long a job of a dead worker waits, regardless of its duration.
   */
  readonly lease: Duration.DurationInput
  /**
   * How long a running job may continue when its worker stops, before it is interrupted and released. It can be short
   * for resumable jobs. A job that has begun to answer or to send should finish.
   */
  readonly drain: Duration.DurationInput
  /** Maximum share of a worker's slots for one owner, at least one slot. Default: all. */
  readonly ownerShare?: number
  /**
   * Maximum share of a worker's slots for one group of owners: owners with the same name up to the first slash.
   * Default: all.
   */
  readonly groupShare?: number
}

const defaults = {
  backoff: "2 seconds",
  keepCompleted: 100,
  keepFailed: 500,
  lease: "30 seconds",
  drain: "1 second",
  ownerShare: 1 / 2
} as const

/** Retries, shutdown and owner share of each queue. */
export const policies = {
  ingestion: {
    ...defaults,
    attempts: 3
  },
  embedding: {
    ...defaults,
    attempts: 10
  },
  "artifact-cleanup": {
    ...defaults,
    attempts: 20,
    maxBackoff: "1 hour"
  },
  "channel-inbound": {
    ...defaults,
    attempts: 5,
    lease: "20 seconds",
    drain: "30 seconds"
  },
  "channel-outbound": {
    ...defaults,
    attempts: 3,
    lease: "20 seconds",
    drain: "30 seconds",
    ownerShare: 2 / 3
  },
  // The handler determines the time of the next attempt, and gives up after some time.
  "webhook-outbound": {
    ...defaults,
    attempts: 1_000_000,
    backoff: "1 second",
    maxBackoff: "1 second",
    lease: "20 seconds",
    drain: "15 seconds",
    ownerShare: 1 / 8,
    groupShare: 1 / 4
  },
  // It resumes after the last answered question.
  experiments: {
    ...defaults,
    attempts: 10,
    maxBackoff: "1 minute"
  }
} as const satisfies Record<QueueName, QueuePolicy>

/**
 * {@link policies} for a database that only this process uses. Its next start ends all leases, so they may be long: a
 * renewal that waits behind slow statements does not lose a job.
 */
export const singleProcessPolicies: Readonly<Record<QueueName, QueuePolicy>> = Record.map(
  policies,
  (policy: QueuePolicy) => ({ ...policy, lease: "10 minutes" })
)

/** The queue itself is not available. */
export class JobQueueError extends Schema.TaggedError<JobQueueError>()("JobQueueError", {
  message: Schema.String
}) {}

/**
 * Failure of a handler. `message` is stored as the attempt's error, `fatal` ends the job without another attempt, and
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
  /** Delay from now. */
  readonly delay?: Duration.DurationInput
  /** Jobs of one queue with the same key run one at a time, in order. */
  readonly serialKey?: string
  /** The owner of the job. Owners take turns. Default: the owner of the enqueuing fiber. */
  readonly owner?: string
}

/** One of several jobs that are enqueued together. */
export interface JobRequest {
  readonly payload: JsonObject
  readonly options?: EnqueueOptions
}

/** Jobs that the caller's own statement inserts into `queue_jobs`. */
export interface PreparedJobs {
  /** In the order of the requests. */
  readonly ids: ReadonlyArray<QueueJobId>
  readonly maxAttempts: number
  /** The notification that the statement must send when it inserts any of them. */
  readonly notification: { readonly channel: string; readonly text: string }
  /** Must run after the statement. */
  readonly inserted: Effect.Effect<void>
}

export interface JobListing {
  readonly state?: JobState | undefined
  readonly limit: number
  /** The `next` of the previous page. */
  readonly before?: string | undefined
}

export class JobQueue extends Context.Tag("capabilities/JobQueue")<
  JobQueue,
  {
    /** Joins the caller's transaction: the job exists exactly when that commits. */
    readonly enqueue: (
      queue: QueueName,
      payload: JsonObject,
      options?: EnqueueOptions
    ) => Effect.Effect<QueueJobId, JobQueueError>
    /**
     * {@link enqueue} for many jobs in one statement, all of them or none. Their order, and that of the returned ids,
     * is the order of the requests.
     */
    readonly enqueueAll: (
      queue: QueueName,
      jobs: ReadonlyArray<JobRequest>
    ) => Effect.Effect<ReadonlyArray<QueueJobId>, JobQueueError>
    /** `count` jobs without a delay, for a statement of the caller, in the caller's transaction if there is one. */
    readonly prepare: (queue: QueueName, count: number) => Effect.Effect<PreparedJobs>
    /**
     * Claims and runs jobs, at most `concurrency` at once, owners in turns, until the scope closes. Then it claims no
     * more and waits for the running ones, as long as the policy allows. Jobs that still run after that are interrupted
     * and return to the queue without losing an attempt. A defect of the handler counts as a failed attempt.
     *
     * A job runs at least once: it is repeated when its worker died, and its handler is interrupted when its lease was
     * lost. When the worker of the last attempt died, `onDead` runs (again, if necessary) before the job fails with the
     * reason "worker died".
     */
    readonly work: <R>(
      queue: QueueName,
      concurrency: number,
      handler: (job: QueueJob) => Effect.Effect<void, JobFailure, R>,
      onDead?: (job: QueueJob) => Effect.Effect<void, never, R>
    ) => Effect.Effect<void, never, R | Scope.Scope>
    /** One row for each queue. `waiting` jobs are due; `delayed` jobs are due later. */
    readonly counts: Effect.Effect<ReadonlyArray<QueueCounts>, JobQueueError>
    /** Jobs of a queue, newest first. `next` continues the list and is null at its end. */
    readonly list: (
      queue: QueueName,
      listing: JobListing
    ) => Effect.Effect<
      { readonly jobs: ReadonlyArray<JobSummary>; readonly next: string | null },
      JobQueueError
    >
    /**
     * Runs a failed job again, with all its attempts. Errors of earlier attempts are kept. Any other job is not changed
     * (`retried` false). Null when the queue has no such job.
     */
    readonly retry: (
      queue: QueueName,
      id: QueueJobId
    ) => Effect.Effect<{ readonly job: JobSummary; readonly retried: boolean } | null, JobQueueError>
  }
>() {}
