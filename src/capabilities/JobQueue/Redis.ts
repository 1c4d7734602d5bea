/**
 * Jobs in the table `queue_jobs`, workers fed by Redis (BullMQ).
 *
 * Jobs, their order, leases, attempts and ends are in the database alone, exactly as without Redis: enqueueing joins the
 * caller's transaction, and a Redis that is lost, emptied or down loses nothing. Redis only says which of all workers
 * looks when: for each job a ticket is written once the transaction that put it in has committed. The notification of
 * the commit comes back to the process that enqueued, unless the statement was a transaction of its own; then it writes
 * the tickets. What it did not live to write is written by the sweep of any worker, at most five seconds later. While
 * Redis does not answer, the sweep takes jobs itself.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Cluster, Redis } from "ioredis"
import { randomUUID } from "node:crypto"
import { JobQueue, policies, type QueuePolicy } from "../JobQueue.ts"
import { startBullWorker } from "./redis/BullWorker.ts"
import { makeTickets, type Ticket } from "./redis/Tickets.ts"
import { makeJobs } from "./table/Jobs.ts"
import type { QueueName } from "../../domain/Job.ts"
import { makeRows, type NewJob } from "./table/Rows.ts"

export interface RedisQueueOptions {
  /** For short commands; workers open connections of their own with its settings. */
  readonly redis: Redis | Cluster
  /** By queue; {@link policies} by default. */
  readonly policies?: Readonly<Record<QueueName, QueuePolicy>>
}

const channel = "queue_tickets"

/** Transactions of this process whose end is not known; what is forgotten is found by the sweep. */
const mostOpen = 10_000

/** Transactions whose tickets are written together. */
const batch = 200
/** After tickets were written, those of whatever commits so soon go together. */
const soon = "5 millis"
/** The same while so many wait that no more were needed: to look whether they still do costs a command. */
const later = "50 millis"

interface Committed {
  readonly queue: QueueName
  readonly tickets: ReadonlyArray<Ticket>
}

/** Tickets that wait for the commit of the transaction that put their jobs in. */
const makeOutbox = () => {
  const self = randomUUID()
  const open = new Map<string, Committed>()
  let seen: ReadonlyArray<string> = []
  return {
    keep: (tickets: Committed) => {
      const text = `${self} ${randomUUID()}`
      open.set(text, tickets)
      const [oldest] = open.keys()
      if (open.size > mostOpen && oldest !== undefined) open.delete(oldest)
      return { channel, text }
    },
    take: (text: string) => {
      const found = open.get(text)
      open.delete(text)
      return found
    },
    /** All of it, which stays: what is not committed yet will be heard of. */
    waiting: () => [...open.values()],
    /**
     * What was there at the call before. Where notifications do not arrive, nothing says when a transaction has ended:
     * a ticket that comes too soon does no harm, and the sweep writes another.
     */
    takeOld: () => {
      const old = seen.flatMap((text) => open.get(text) ?? [])
      for (const text of seen) open.delete(text)
      seen = [...open.keys()]
      return old
    }
  } as const
}

/** Writes tickets of one queue; true when more would have brought nobody else. */
type Write = (queue: QueueName, tickets: ReadonlyArray<Ticket>) => Effect.Effect<boolean>

/** Writes the tickets of what has been committed to one queue, many in one command. */
const startLine = (queue: QueueName, write: Write) =>
  Effect.gen(function* () {
    const committed = yield* Queue.sliding<Committed>(mostOpen)
    yield* Queue.takeBetween(committed, 1, batch).pipe(
      Effect.flatMap((found) =>
        write(
          queue,
          [...found].flatMap(({ tickets }) => tickets)
        )
      ),
      Effect.flatMap((crowded) => Effect.sleep(crowded ? later : soon)),
      Effect.forever,
      Effect.forkScoped
    )
    return committed
  })

/** Hears of commits, and writes their tickets. */
const startRelay = (sql: PgClient.PgClient, outbox: ReturnType<typeof makeOutbox>, write: Write) =>
  Effect.gen(function* () {
    const lines = yield* Effect.all({
      ingestion: startLine("ingestion", write),
      embedding: startLine("embedding", write),
      "artifact-cleanup": startLine("artifact-cleanup", write),
      "channel-inbound": startLine("channel-inbound", write),
      "channel-outbound": startLine("channel-outbound", write)
    } satisfies Record<QueueName, unknown>)
    const relay = (found: Committed) => Effect.asVoid(Queue.offer(lines[found.queue], found))
    yield* sql.listen(channel).pipe(
      Stream.zipWithIndex,
      Stream.runForEach(([text, place]) => {
        // What was committed before anybody listened, nobody has heard of. Said again, it means that nobody ever does.
        if (text === "")
          return Effect.forEach(place === 0 ? outbox.waiting() : outbox.takeOld(), relay, { discard: true })
        const found = outbox.take(text)
        return found === undefined ? Effect.void : relay(found)
      }),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.forkScoped
    )
    return relay
  })

/** A job that is revived is ticketed once more. */
const ticketsOf = (queue: QueueName, jobs: ReadonlyArray<Pick<NewJob, "id" | "delay">>): Committed => ({
  queue,
  tickets: jobs.map(({ delay, id }) => ({ name: `${id}-${randomUUID()}`, delay }))
})

const make = ({ redis, ...options }: RedisQueueOptions) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const policyOf = (queue: QueueName): QueuePolicy => (options.policies ?? policies)[queue]
    const tickets = yield* Effect.all({
      ingestion: makeTickets(redis, "ingestion"),
      embedding: makeTickets(redis, "embedding"),
      "artifact-cleanup": makeTickets(redis, "artifact-cleanup"),
      "channel-inbound": makeTickets(redis, "channel-inbound"),
      "channel-outbound": makeTickets(redis, "channel-outbound")
    } satisfies Record<QueueName, unknown>)
    const write: Write = (queue, given) =>
      Effect.catchAll(tickets[queue].write(given), ({ cause }) =>
        Effect.as(
          Effect.logWarning("Redis could not be told of jobs; they will be found without it", cause),
          false
        )
      )
    const rows = makeRows(sql)
    const outbox = makeOutbox()
    const relay = yield* startRelay(sql, outbox, write)
    const jobs = makeJobs(rows, policyOf, {
      news: (queue, given) => outbox.keep(ticketsOf(queue, given)),
      inserted: () => Effect.void,
      committed: (queue, given) => Effect.suspend(() => relay(ticketsOf(queue, given)))
    })

    return JobQueue.of({
      ...jobs,
      work: (queue, concurrency, handler, onDead = () => Effect.void) =>
        startBullWorker(
          { redis, rows, tickets: tickets[queue] },
          { queue, concurrency, handler, onDead, policy: policyOf(queue) }
        )
    })
  })

/** The queue over `queue_jobs`, fed by Redis. */
export const layerRedis = (options: RedisQueueOptions): Layer.Layer<JobQueue, never, PgClient.PgClient> =>
  Layer.scoped(JobQueue, make(options))
