/**
 * Jobs in the table `queue_jobs`, on either engine. Enqueueing joins the caller's transaction. Workers of this process
 * are woken directly, those of others by NOTIFY on commit. A worker also polls at least every five seconds.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { JobQueue, policies, type QueuePolicy } from "../JobQueue.ts"
import { makeJobs } from "./table/Jobs.ts"
import { channel, makeRows } from "./table/Rows.ts"
import type { QueueName } from "../../domain/knowledge/Job.ts"
import { makeWakeUps } from "./table/WakeUps.ts"
import { startWorker } from "./table/Worker.ts"

export interface TableOptions {
  /** By queue; {@link policies} by default. */
  readonly policies?: Readonly<Record<QueueName, QueuePolicy>>
}

const make = (options: TableOptions) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const rows = makeRows(sql)
    const policyOf = (queue: QueueName): QueuePolicy => (options.policies ?? policies)[queue]
    const localWorkers = new Set<{ readonly queue: QueueName; readonly wake: Effect.Effect<void> }>()
    // Within a transaction this is too early, but harmless: the commit sends the notification.
    const wakeLocalWorkers = (queue: QueueName) =>
      Effect.forEach(localWorkers, (worker) => (worker.queue === queue ? worker.wake : Effect.void), {
        discard: true
      })
    const jobs = makeJobs(rows, policyOf, wakeLocalWorkers)

    return JobQueue.of({
      ...jobs,
      work: (queue, concurrency, handler, onDead = () => Effect.void) =>
        Effect.gen(function* () {
          const wakeUps = yield* makeWakeUps
          const wake = yield* startWorker(rows, {
            queue,
            concurrency,
            handler: (job) => Effect.zipRight(wakeUps.jobStarted, handler(job)),
            onDead,
            policy: policyOf(queue)
          })
          const worker = { queue, wake }
          yield* Effect.acquireRelease(
            Effect.sync(() => localWorkers.add(worker)),
            () => Effect.sync(() => localWorkers.delete(worker))
          )
          yield* Effect.forkScoped(wakeUps.run(wake))
          yield* sql.listen(channel).pipe(
            // The empty name means that listening has begun. Earlier notifications may have been missed.
            Stream.runForEach((name) => (name === queue || name === "" ? wakeUps.jobAnnounced : Effect.void)),
            Effect.retry(Schedule.spaced("1 second")),
            Effect.forkScoped
          )
        })
    })
  })

/** The queue over `queue_jobs` with these options. */
export const layerTableWith = (options: TableOptions): Layer.Layer<JobQueue, never, PgClient.PgClient> =>
  Layer.effect(JobQueue, make(options))

/** The queue over `queue_jobs` with {@link policies}. */
export const layerTable: Layer.Layer<JobQueue, never, PgClient.PgClient> = layerTableWith({})

/**
 * Makes jobs due whose time is later than possible because the clock was set back: created in the future, or delayed
 * for longer than the maximum.
 */
const repairRunTimes = (sql: PgClient.PgClient) => sql`
  update queue_jobs set run_at = clock_timestamp()
  where state = 'waiting' and run_at > clock_timestamp()
    and (created_at > clock_timestamp() or run_at > clock_timestamp() + interval '61 minutes')`

/**
 * Ends the leases of all running jobs, so that the next claim gets them at once. Only for a store used by a single
 * process, at its start: all earlier workers have died, and the clock may have been set.
 */
export const expireLeases = Effect.flatMap(PgClient.PgClient, (sql) =>
  sql`update queue_jobs set lease_until = clock_timestamp() - interval '1 second' where state = 'active'`.pipe(
    Effect.zipRight(repairRunTimes(sql)),
    Effect.asVoid
  )
)
