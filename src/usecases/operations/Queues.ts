/** Background jobs, for the operator. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type JobListing, JobQueue } from "../../capabilities/JobQueue.ts"
import { Conflict, NotFound, ServiceUnavailable, noSuch } from "../../domain/Errors.ts"
import type { QueueJobId } from "../../domain/Ids.ts"
import { QueueName } from "../../domain/knowledge/Job.ts"

const unreachable = () => new ServiceUnavailable({ message: "The job queue cannot be reached." })

const knownQueue = (name: string) =>
  Schema.is(QueueName)(name) ? Effect.succeed(name) : Effect.fail(noSuch("queue"))

export class Queues extends Effect.Service<Queues>()("usecases/operations/Queues", {
  effect: Effect.gen(function* () {
    const queue = yield* JobQueue

    /** Every queue with the number of its jobs in each state. */
    const counts = Effect.mapError(queue.counts, unreachable)

    /** Jobs of one queue, newest first. */
    const list = Effect.fn("Queues.list")(function* (name: string, listing: JobListing) {
      return yield* Effect.mapError(queue.list(yield* knownQueue(name), listing), unreachable)
    })

    /** Runs a failed job again, with all its attempts. CONFLICT for a job in another state. */
    const retry = Effect.fn("Queues.retry")(function* (name: string, id: QueueJobId) {
      const found = yield* Effect.mapError(queue.retry(yield* knownQueue(name), id), unreachable)
      if (found === null) return yield* new NotFound({ message: `The queue has no job ${id}.` })
      const { job, retried } = found
      if (!retried)
        return yield* new Conflict({ message: `Job ${id} is ${job.state}; only failed ones are retried.` })
      return job
    })

    return { counts, list, retry } as const
  })
}) {}
