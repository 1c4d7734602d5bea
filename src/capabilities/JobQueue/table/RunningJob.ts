/** A job that a worker runs, and how its result is written. */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type { QueueName } from "../../../domain/knowledge/Job.ts"
import type { JobFailure, QueueJob, QueuePolicy } from "../../JobQueue.ts"
import type { Lease, Rows } from "./Rows.ts"

export interface RunningJob extends Lease {
  readonly job: QueueJob
  /** The owner of the job. */
  readonly owner: string
  /** The worker of its last attempt died. Only `onDead` is left to run. */
  readonly dead: boolean
  /** Start of the last confirmed lease, by this process's clock: the moment before it was requested. */
  renewedAt: number
  /** Why its handler was interrupted, if it was. */
  interruption: "lost" | "stopped" | undefined
  fiber: Fiber.RuntimeFiber<void> | undefined
}

// The number of failed jobs in the table cannot show new ones, because the table keeps only the newest of them.
const failures = Metric.counter("spoke_queue_failed_jobs_total", {
  description: "Jobs that this process recorded as failed for good, by queue",
  incremental: true
})

const failuresOf = (queue: QueueName) => Metric.tagged(failures, "queue", queue)

/** Registers the queue's counter with 0, because monitoring sees no increase in a series that begins with 1. */
export const registerFailures = (queue: QueueName) => Effect.asVoid(Metric.value(failuresOf(queue)))

/** Counts a failure that was written. Without the lease, the worker that has it writes and counts its own. */
const countFailure = ({ job }: RunningJob, write: Effect.Effect<boolean, unknown>) =>
  Effect.tap(write, (isHeld) => (isHeld ? Metric.increment(failuresOf(job.queue)) : Effect.void))

/** Interrupts the handler without waiting for it. */
export const interruptHandler = (held: RunningJob, reason: "lost" | "stopped") =>
  Effect.suspend(() => {
    if (held.interruption !== undefined || held.fiber === undefined) return Effect.void
    held.interruption = reason
    return Fiber.interruptFork(held.fiber)
  })

/** Longer delays would be taken for those of a clock that was set back, see `repairAfterClockSetBack`. */
const maxDelay = Duration.hours(1)

/**
 * Delay before attempt n + 1: the policy's backoff times 2^(n - 1), bounded, and no shorter than the failure requests.
 */
const retryDelay = (policy: QueuePolicy, attempt: number, failure: Option.Option<JobFailure>) =>
  Duration.min(
    maxDelay,
    Duration.max(
      Duration.min(
        Duration.times(Duration.decode(policy.backoff), 2 ** (attempt - 1)),
        policy.maxBackoff ?? Duration.infinity
      ),
      Option.match(failure, {
        onNone: () => Duration.zero,
        onSome: ({ retryAfter }) => retryAfter ?? Duration.zero
      })
    )
  )

const retryOrFail = (rows: Rows, policy: QueuePolicy, held: RunningJob, cause: Cause.Cause<JobFailure>) =>
  Effect.gen(function* () {
    const { attempt, lastAttempt } = held.job
    const failure = Cause.failureOption(cause)
    const message = Option.match(failure, {
      onNone: () => "An unexpected error stopped the job.",
      onSome: (error) => error.message
    })
    if (Option.isNone(failure)) yield* Effect.logError("A job broke", cause)
    if (lastAttempt || Option.exists(failure, ({ fatal }) => fatal)) {
      yield* Effect.logError("A job failed permanently", message)
      return yield* countFailure(held, rows.fail(held, message))
    }
    const log = Option.exists(failure, ({ expected }) => expected === true)
      ? Effect.logDebug
      : Effect.logWarning
    yield* log("An attempt failed and will be retried", message)
    return yield* rows.retry(held, message, retryDelay(policy, attempt, failure))
  })

const writeResult = (
  rows: Rows,
  policy: QueuePolicy,
  held: RunningJob,
  exit: Exit.Exit<void, JobFailure>
) => {
  if (Exit.isSuccess(exit)) return held.dead ? countFailure(held, rows.failDead(held)) : rows.complete(held)
  if (held.dead) {
    return Effect.zipRight(
      Effect.logError("A permanently failed job could not be reported", exit.cause),
      countFailure(held, rows.failDead(held))
    )
  }
  return held.interruption === "stopped" && Cause.isInterrupted(exit.cause)
    ? rows.release(held)
    : retryOrFail(rows, policy, held, exit.cause)
}

/**
 * Writes the result of the handler, unless another worker has the lease. Retries for the length of the lease. If it
 * cannot be written, another worker repeats the job.
 */
export const settle = (
  rows: Rows,
  policy: QueuePolicy,
  held: RunningJob,
  exit: Exit.Exit<void, JobFailure>
): Effect.Effect<void> => {
  // If `onDead` was interrupted, the worker that gets the lease next runs it.
  const isUnreported = held.dead && held.interruption === "stopped" && Exit.isFailure(exit)
  if (held.interruption === "lost" || isUnreported)
    return Effect.logWarning("A job was left to another worker")
  return Effect.suspend(() => writeResult(rows, policy, held, exit)).pipe(
    Effect.retry(Schedule.exponential("100 millis").pipe(Schedule.upTo(policy.lease))),
    Effect.flatMap((isHeld) =>
      isHeld ? Effect.void : Effect.logWarning("A job ended after its lease was lost")
    ),
    Effect.catchAllCause((cause) =>
      Effect.logError("The result of a job could not be stored; the job will be repeated", cause)
    )
  )
}
