/** What a queue does with the rows of its jobs, whoever wakes its workers: put them in, count, show and revive them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import { currentOwner } from "../../../domain/CurrentOwner.ts"
import { newId, QueueJobId, typeId } from "../../../domain/Ids.ts"
import {
  JobQueueError,
  type JobListing,
  type JobRequest,
  type PreparedJobs,
  type QueuePolicy
} from "../../JobQueue.ts"
import type { QueueName } from "../../../domain/Job.ts"
import type { NewJob, News, Rows } from "./Rows.ts"

/** How workers hear of jobs. */
export interface Herald {
  /** What is told when the transaction that puts these jobs in commits. */
  readonly news: (queue: QueueName, jobs: ReadonlyArray<Pick<NewJob, "id" | "delay">>) => News
  /** After the statement, which may not be committed yet. */
  readonly inserted: (queue: QueueName) => Effect.Effect<void>
  /** In place of both where the statement was a transaction of its own, and nobody else has to be told. */
  readonly committed?: (
    queue: QueueName,
    jobs: ReadonlyArray<Pick<NewJob, "id" | "delay">>
  ) => Effect.Effect<void>
}

const unreachable = <A>(effect: Effect.Effect<A, unknown>) =>
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

export const makeJobs = (rows: Rows, policyOf: (queue: QueueName) => QueuePolicy, herald: Herald) => {
  /** What the statement that puts them in has to notify, if anything, and what is to be done after it. */
  const telling = (queue: QueueName, jobs: ReadonlyArray<Pick<NewJob, "id" | "delay">>) =>
    Effect.map(Effect.serviceOption(SqlClient.TransactionConnection), (transaction) =>
      Option.isNone(transaction) && herald.committed !== undefined
        ? { news: null, inserted: herald.committed(queue, jobs) }
        : { news: herald.news(queue, jobs), inserted: herald.inserted(queue) }
    )

  const put = (queue: QueueName, requests: ReadonlyArray<JobRequest>) =>
    Effect.gen(function* () {
      if (requests.length === 0) return []
      const jobs = yield* Effect.forEach(requests, newJob)
      const { inserted, news } = yield* telling(queue, jobs)
      yield* unreachable(rows.insert(queue, jobs, policyOf(queue), news))
      yield* inserted
      return jobs.map(({ id }) => id)
    })

  const prepare = (queue: QueueName, count: number) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const ids = Array.from({ length: count }, () => QueueJobId.make(typeId("qjb", now)))
      const told = yield* telling(
        queue,
        ids.map((id) => ({ id, delay: Duration.zero }))
      )
      const prepared: PreparedJobs = { ids, maxAttempts: policyOf(queue).attempts, ...told }
      return prepared
    })

  const list = Effect.fn("JobQueue.list")(function* (queue: QueueName, listing: JobListing) {
    const found = yield* unreachable(rows.list(queue, { ...listing, limit: listing.limit + 1 }))
    const page = found.slice(0, listing.limit)
    const last = found.length > listing.limit ? page.at(-1) : undefined
    return { jobs: page.map(({ place: _, ...job }) => job), next: last?.place ?? null }
  })

  const retry = Effect.fn("JobQueue.retry")(function* (queue: QueueName, id: QueueJobId) {
    const news = herald.news(queue, [{ id, delay: Duration.zero }])
    const revived = yield* unreachable(rows.revive(queue, id, news))
    if (Option.isSome(revived)) yield* herald.inserted(queue)
    const found = Option.isSome(revived) ? revived : yield* unreachable(rows.find(queue, id))
    return Option.match(found, {
      onNone: () => null,
      onSome: ({ place: _, ...job }) => ({ job, retried: Option.isSome(revived) })
    })
  })

  return {
    enqueue: (queue: QueueName, payload: JobRequest["payload"], options: JobRequest["options"] = {}) =>
      Effect.gen(function* () {
        const [id] = yield* put(queue, [{ payload, options }])
        return id ?? (yield* Effect.dieMessage("A job was put in without an id."))
      }).pipe(Effect.withSpan("JobQueue.enqueue", { attributes: { queue } })),
    enqueueAll: (queue: QueueName, jobs: ReadonlyArray<JobRequest>) =>
      Effect.withSpan(put(queue, jobs), "JobQueue.enqueueAll", { attributes: { queue, jobs: jobs.length } }),
    prepare,
    counts: unreachable(rows.counts).pipe(Effect.withSpan("JobQueue.counts")),
    list,
    retry
  } as const
}
