/** A job held by a worker, and how its end is written. */
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
  ending: "lost" | "stopped" | undefined
  fiber: Fiber.RuntimeFiber<void> | undefined
}

// The number of failed jobs in the table cannot show new ones, because the table keeps only the newest of them.
const failures = Metric.counter("spoke_queue_failed_jobs_total", {
  description: "Jobs that this process recorded as failed for good, by queue",
  incremental: true
})

const failuresOf = (queue: QueueName) => Metric.tagged(failures, "queue", queue)

/** Registers the queue's counter, because an increase is not seen in a series that begins with it. */
export const beginFailures = (queue: QueueName) => Effect.asVoid(Metric.value(failuresOf(queue)))

/** Counts a failure that was written. Without the lease, the worker that has it writes and counts its own. */
const counted = ({ job }: RunningJob, written: Effect.Effect<boolean, unknown>) =>
  Effect.tap(written, (kept) => (kept ? Metric.increment(failuresOf(job.queue)) : Effect.void))

/** A unique name of a claim. A worker may hold a job twice, if it lost the lease and claimed the job again. */
export const nameOf = ({ id, token }: Lease) => `${id} ${token}`

/** Interrupts the handler without waiting for it. */
export const interruptHandler = (held: RunningJob, why: "lost" | "stopped") =>
  Effect.suspend(() => {
    if (held.ending !== undefined || held.fiber === undefined) return Effect.void
    held.ending = why
    return Fiber.interruptFork(held.fiber)
  })

/** Longer delays would be taken for those of a clock that was set back, see `afterClockSetBack`. */
const maxDelay = Duration.hours(1)

/**
 * Delay before attempt n + 1: the policy's backoff times 2^(n - 1), bounded, and no shorter than the failure requests.
 */
const delayOf = (policy: QueuePolicy, attempt: number, failure: Option.Option<JobFailure>) =>
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
      return yield* counted(held, rows.fail(held, message))
    }
    const log = Option.exists(failure, ({ expected }) => expected === true)
      ? Effect.logDebug
      : Effect.logWarning
    yield* log("An attempt failed and will be retried", message)
    return yield* rows.retry(held, message, delayOf(policy, attempt, failure))
  })

const outcome = (rows: Rows, policy: QueuePolicy, held: RunningJob, exit: Exit.Exit<void, JobFailure>) => {
  if (Exit.isSuccess(exit)) return held.dead ? counted(held, rows.failDead(held)) : rows.complete(held)
  if (held.dead) {
    return Effect.zipRight(
      Effect.logError("A permanently failed job could not be reported", exit.cause),
      counted(held, rows.failDead(held))
    )
  }
  return held.ending === "stopped" && Cause.isInterrupted(exit.cause)
    ? rows.giveBack(held)
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
  const isUnreported = held.dead && held.ending === "stopped" && Exit.isFailure(exit)
  if (held.ending === "lost" || isUnreported) return Effect.logWarning("A job was left to another worker")
  return Effect.suspend(() => outcome(rows, policy, held, exit)).pipe(
    Effect.retry(Schedule.exponential("100 millis").pipe(Schedule.upTo(policy.lease))),
    Effect.flatMap((kept) =>
      kept ? Effect.void : Effect.logWarning("A job ended after its lease was lost")
    ),
    Effect.catchAllCause((cause) =>
      Effect.logError("The result of a job could not be stored; the job will be repeated", cause)
    )
  )
}
