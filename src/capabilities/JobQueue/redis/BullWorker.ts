/**
 * A worker that BullMQ tells when to look. With a ticket it claims jobs one after the other until none is due, so that
 * what waited behind a serial key or lost its ticket is not left lying. The sweep writes the tickets of whatever waits
 * and has none.
 */
import { Worker as Bull } from "bullmq"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Schedule from "effect/Schedule"
import { Cluster, type Redis } from "ioredis"
import type { Due, Rows } from "../table/Rows.ts"
import { openWorker, type WorkerOptions } from "../table/Worker.ts"
import type { QueueName } from "../../../domain/Job.ts"
import { prefix, type Ticket, type Tickets } from "./Tickets.ts"

const longestSweep = Duration.seconds(5)
const shortestSweep = Duration.millis(200)
/** Tickets that a sweep writes at most. */
const mostSwept = 500
/** Milliseconds that are waited for rather than ticketed. */
const moment = 100
/** What the connections are given to close before they are cut. */
const farewell = Duration.seconds(3)

interface Feed {
  readonly redis: Redis | Cluster
  readonly rows: Rows
  readonly tickets: Tickets
}

/** Retries and returns need a ticket of their own; the first one of the job is gone by now, or about to go. */
const ticketing = (rows: Rows, write: (ticket: Ticket) => Effect.Effect<void>): Rows => ({
  ...rows,
  retry: (lease, message, delay) =>
    Effect.tap(rows.retry(lease, message, delay), (kept) =>
      kept ? write({ name: `${lease.id}-${lease.token}`, delay }) : Effect.void
    ),
  giveBack: (lease) =>
    Effect.tap(rows.giveBack(lease), (kept) =>
      kept ? write({ name: `${lease.id}-${lease.token}`, delay: Duration.zero }) : Effect.void
    )
})

const quietly = (call: () => Promise<unknown>) =>
  Effect.tryPromise(call).pipe(Effect.interruptible, Effect.timeoutOption(farewell), Effect.ignore)

/** A connection of its own, which waits for as long as it takes. */
const patient = (redis: Redis | Cluster) => {
  const waiting = { maxRetriesPerRequest: null, commandTimeout: undefined }
  return redis instanceof Cluster
    ? redis.duplicate([], {
        enableOfflineQueue: true,
        redisOptions: { ...redis.options.redisOptions, ...waiting }
      })
    : redis.duplicate({ enableOfflineQueue: true, ...waiting })
}

/** Takes nothing before it is started. Its errors are the connection's, which tells of them itself. */
const openBull = (
  redis: Redis | Cluster,
  queue: QueueName,
  concurrency: number,
  process: () => Promise<void>
) =>
  Effect.gen(function* () {
    const connection = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const own = patient(redis)
        own.on("error", () => {})
        return own
      }),
      (own) => Effect.sync(() => own.disconnect())
    )
    return yield* Effect.acquireRelease(
      Effect.sync(() => {
        const bull = new Bull(queue, process, {
          connection,
          prefix,
          concurrency,
          autorun: false,
          skipVersionCheck: true,
          // A ticket of a process that died is thrown away: the sweep writes one as soon as the job's lease is over.
          maxStalledCount: 0,
          runRetryDelay: 1_000
        })
        bull.on("error", () => {})
        return bull
      }),
      (bull) => quietly(() => bull.close(true))
    )
  })

const ticketOf = ({ attempts, id, lost }: Due): Ticket => ({
  name: `${id}-${attempts}-${lost ? "lost" : "due"}`,
  delay: Duration.zero
})

/** Runs until the scope closes: then it takes no more jobs, and what it runs ends or goes back. */
export const startBullWorker = <R>({ redis, rows, tickets }: Feed, options: WorkerOptions<R>) =>
  Effect.gen(function* () {
    const { concurrency, policy, queue } = options
    const write = (ticket: Ticket) =>
      Effect.catchAll(tickets.write([ticket]), ({ cause }) =>
        Effect.logWarning("Redis could not be told of a job; it will be found without it", cause)
      )
    const runtime = yield* Effect.runtime<R>()
    let stopping = false
    let serve: Effect.Effect<void, never, R> = Effect.void
    const bull = yield* openBull(redis, queue, concurrency, () => Runtime.runPromise(runtime)(serve))
    const { takeUp } = yield* openWorker(ticketing(rows, write), options)

    /**
     * A ticket may come a moment before the database's clock says that the job is due: true when that moment was waited
     * for; what is due a little later gets another ticket.
     */
    const waited = Effect.gen(function* () {
      const next = Option.getOrElse(yield* rows.nextDue(queue), () => Number.POSITIVE_INFINITY)
      if (next <= 0 || next > Duration.toMillis(longestSweep)) return false
      if (next <= moment) return yield* Effect.as(Effect.sleep(Duration.millis(next + 1)), true)
      const at = (yield* Clock.currentTimeMillis) + next
      // Idle tickets of the same moment become one.
      yield* write({ name: `again-${Math.ceil(at / moment)}`, delay: Duration.millis(next) })
      return false
    })
    serve = Effect.gen(function* () {
      let idle = 0
      while (!stopping && idle < 3) {
        const [fiber] = yield* takeUp(1)
        if (fiber !== undefined) yield* Fiber.await(fiber)
        else if (yield* waited) idle++
        else break
      }
    }).pipe(
      Effect.catchAllCause((cause) =>
        Effect.logWarning("The job queue cannot be reached; the sweep will try again", cause)
      )
    )

    const withoutRedis = Effect.gen(function* () {
      for (let free = 0; free < concurrency; free++) yield* Effect.forkDaemon(serve)
    })
    const sweep = Effect.gen(function* () {
      const due = yield* rows.due(queue, mostSwept)
      if (due.length === 0) return
      yield* Effect.gen(function* () {
        if ((yield* tickets.waiting) < due.length) yield* tickets.write(due.map(ticketOf))
      }).pipe(
        Effect.catchAll(({ cause }) =>
          Effect.zipRight(
            Effect.logWarning("Redis does not answer; jobs are taken without it", cause),
            withoutRedis
          )
        )
      )
    }).pipe(
      Effect.catchAllCause((cause) =>
        Effect.logWarning("The job queue cannot be reached; trying again", cause)
      )
    )

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        stopping = true
        return quietly(() => bull.pause(true))
      })
    )
    yield* Effect.tryPromise(() => bull.run()).pipe(
      Effect.catchAll((cause) => Effect.logWarning("Tickets cannot be taken; trying again", cause)),
      Effect.repeat(Schedule.spaced("1 second")),
      Effect.forkScoped
    )
    const pause = Duration.clamp(Duration.times(policy.lease, 1 / 3), {
      minimum: shortestSweep,
      maximum: longestSweep
    })
    yield* Effect.forkScoped(Effect.repeat(sweep, Schedule.spaced(pause)))
  })
