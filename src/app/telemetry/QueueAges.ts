/** Number of waiting jobs of each queue and the age of the oldest, for `/readyz` and `/metrics`. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { QueueName } from "../../domain/knowledge/Job.ts"

const jobs = Metric.gauge("spoke_queue_jobs", {
  description: "Jobs of a queue: due, running, due later, or failed for good"
})
const oldest = Metric.gauge("spoke_queue_oldest_waiting_seconds", {
  description: "How long the oldest due job of a queue has waited for a worker"
})

const updateInterval = Duration.seconds(15)
const queryTimeout = Duration.seconds(5)
/** Pause before the next try when the database did not answer. */
const retryDelay = Duration.seconds(1)

interface Row {
  readonly queue: string
  readonly waiting: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
  readonly seconds: number | null
}

const empty = { waiting: 0, active: 0, delayed: 0, failed: 0, seconds: null }

/** One row for each queue; `seconds` is null when no job is due. */
export const read = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<Row>`
    select queue, (count(*) filter (where state = 'waiting' and run_at <= clock_timestamp()))::int as waiting,
      (count(*) filter (where state = 'active'))::int as active,
      (count(*) filter (where state = 'waiting' and run_at > clock_timestamp()))::int as delayed,
      (count(*) filter (where state = 'failed'))::int as failed,
      greatest(0, extract(epoch from clock_timestamp()
        - min(run_at) filter (where state = 'waiting' and run_at <= clock_timestamp())))::int as seconds
    from queue_jobs where state <> 'completed' group by queue`
).pipe(
  Effect.map((rows) =>
    QueueName.literals.map((queue) => ({
      ...(rows.find((row) => row.queue === queue) ?? empty),
      queue,
      // GREATEST ignores nulls: without jobs it is 0.
      seconds: rows.find((row) => row.queue === queue && row.waiting > 0)?.seconds ?? null
    }))
  )
)

const updateMetrics = Effect.flatMap(read, (queues) =>
  Effect.forEach(
    queues,
    ({ queue, seconds, ...counts }) => {
      const jobsOfQueue = Metric.tagged(jobs, "queue", queue)
      const { active, delayed, failed, waiting } = counts
      return Effect.zipRight(
        Metric.set(Metric.tagged(oldest, "queue", queue), seconds ?? 0),
        Effect.forEach(Object.entries({ waiting, active, delayed, failed }), ([state, count]) =>
          Metric.set(Metric.tagged(jobsOfQueue, "state", state), count)
        )
      )
    },
    { discard: true }
  )
).pipe(
  Effect.timeout(queryTimeout),
  Effect.matchCause({ onSuccess: () => updateInterval, onFailure: () => retryDelay })
)

/**
 * Measures until the scope closes. The first measurement ends before it returns, so that there are figures from the
 * start. While the database does not answer, the last figures are kept.
 */
export const watch = Effect.flatMap(updateMetrics, (first) =>
  Effect.forkScoped(
    Effect.zipRight(Effect.sleep(first), Effect.forever(Effect.flatMap(updateMetrics, Effect.sleep)))
  )
)
