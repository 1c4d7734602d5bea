/** Operations on the rows of jobs, apart from running them: enqueue, count, list and retry. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import { currentOwner } from "../../../concurrency/CurrentOwner.ts"
import { newId, QueueJobId, typeId } from "../../../domain/Ids.ts"
import { pageBy } from "../../../domain/Page.ts"
import {
  JobQueueError,
  type JobListing,
  type JobRequest,
  type PreparedJobs,
  type QueuePolicy
} from "../../JobQueue.ts"
import type { QueueName } from "../../../domain/knowledge/Job.ts"
import { channel, type NewJob, type Rows } from "./Rows.ts"

const orUnreachable = <A>(effect: Effect.Effect<A, unknown>) =>
  Effect.catchAll(effect, (cause) =>
    Effect.zipRight(
      Effect.logError("The job queue cannot be reached", cause),
      new JobQueueError({ message: "The job queue cannot be reached." })
    )
  )

const newJob = ({ options: { delay = 0, owner, serialKey } = {}, payload }: JobRequest) =>
  Effect.zipWith(newId.queueJob, FiberRef.get(currentOwner), (id, current): NewJob => ({
    id,
    payload,
    owner: owner ?? current,
    serialKey: serialKey ?? null,
    delay: Duration.decode(delay)
  }))

/** `inserted` must run after the statement that inserts jobs, which may not be committed yet. */
export const makeJobs = (
  rows: Rows,
  policyOf: (queue: QueueName) => QueuePolicy,
  inserted: (queue: QueueName) => Effect.Effect<void>
) => {
  const insertAll = (queue: QueueName, requests: ReadonlyArray<JobRequest>) =>
    Effect.gen(function* () {
      if (requests.length === 0) return []
      const jobs = yield* Effect.forEach(requests, newJob)
      yield* orUnreachable(rows.insert(queue, jobs, policyOf(queue)))
      yield* inserted(queue)
      return jobs.map(({ id }) => id)
    })

  const prepare = (queue: QueueName, count: number) =>
    Effect.map(Clock.currentTimeMillis, (now): PreparedJobs => ({
      ids: Array.from({ length: count }, () => QueueJobId.make(typeId("qjb", now))),
      maxAttempts: policyOf(queue).attempts,
      notification: { channel, text: queue },
      inserted: inserted(queue)
    }))

  const list = Effect.fn("JobQueue.list")(function* (queue: QueueName, listing: JobListing) {
    const found = yield* orUnreachable(rows.list(queue, { ...listing, limit: listing.limit + 1 }))
    const { next, rows: page } = pageBy(found, listing.limit, ({ cursor }) => cursor)
    return { jobs: page.map(({ cursor: _, ...job }) => job), next }
  })

  const retry = Effect.fn("JobQueue.retry")(function* (queue: QueueName, id: QueueJobId) {
    const retried = yield* orUnreachable(rows.retryFailed(queue, id))
    if (Option.isSome(retried)) yield* inserted(queue)
    const found = Option.isSome(retried) ? retried : yield* orUnreachable(rows.find(queue, id))
    return Option.match(found, {
      onNone: () => null,
      onSome: ({ cursor: _, ...job }) => ({ job, retried: Option.isSome(retried) })
    })
  })

  return {
    enqueue: (queue: QueueName, payload: JobRequest["payload"], options: JobRequest["options"] = {}) =>
      Effect.gen(function* () {
        const [id] = yield* insertAll(queue, [{ payload, options }])
        return id ?? (yield* Effect.dieMessage("A job was added without an id."))
      }).pipe(Effect.withSpan("JobQueue.enqueue", { attributes: { queue } })),
    enqueueAll: (queue: QueueName, jobs: ReadonlyArray<JobRequest>) =>
      Effect.withSpan(insertAll(queue, jobs), "JobQueue.enqueueAll", {
        attributes: { queue, jobs: jobs.length }
      }),
    prepare,
    counts: orUnreachable(rows.counts).pipe(Effect.withSpan("JobQueue.counts")),
    list,
    retry
  } as const
}
