/**
 * Tickets in Redis: each says that one job of a queue may be due, and is handed to one worker of all processes by BullMQ,
 * at its time. It names no job to run: whoever gets it claims the job whose turn it is in the database. So a ticket too
 * many does no harm, and one too few is written again by the sweep.
 */
import { Queue as BullQueue } from "bullmq"
import * as Array from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { QueueName } from "../../../domain/Job.ts"
import type { Cluster, Redis } from "ioredis"

/** In braces: all keys of a queue lie in one slot of a Redis cluster. */
export const prefix = "{spoke}"

export interface Ticket {
  /** A ticket is not written again while another of this name is there. No colons. */
  readonly name: string
  readonly delay: Duration.Duration
}

export class TicketsError extends Schema.TaggedError<TicketsError>()("TicketsError", {
  cause: Schema.Defect
}) {}

/** Longest wait for Redis. */
const patience = "5 seconds"

/** Tickets that one command writes. */
const batch = 500

/**
 * Tickets that wait for a worker; more would bring nobody else. Whoever takes one goes on until no job is due, and sees all
 * that was committed before it was taken.
 */
const enough = 64
/** So few are written without a look at how many wait. */
const few = 4

const foreign = <A>(call: () => Promise<A>) =>
  Effect.tryPromise({ try: call, catch: (cause) => new TicketsError({ cause }) }).pipe(
    Effect.timeoutFail({
      duration: patience,
      onTimeout: () => new TicketsError({ cause: "Redis did not answer in time." })
    })
  )

const open = (redis: Redis | Cluster, queue: QueueName) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const tickets = new BullQueue(queue, {
        connection: redis,
        prefix,
        skipVersionCheck: true,
        defaultJobOptions: { removeOnComplete: true, removeOnFail: true }
      })
      // The connection tells of its own errors; those of a call reach its caller.
      tickets.on("error", () => {})
      return tickets
    }),
    (tickets) => Effect.ignore(foreign(() => tickets.close()))
  )

export const makeTickets = (redis: Redis | Cluster, queue: QueueName) =>
  Effect.map(open(redis, queue), (tickets) => {
    const waiting = foreign(() => tickets.getWaitingCount())

    const add = (given: ReadonlyArray<Ticket>) =>
      Effect.gen(function* () {
        for (let first = 0; first < given.length; first += batch) {
          const some = given.slice(first, first + batch).map(({ delay, name }) => ({
            name: "due",
            data: {},
            // BullMQ counts in whole milliseconds: rather a moment late than one too early.
            opts: { jobId: name, delay: Math.ceil(Duration.toMillis(delay)) }
          }))
          yield* foreign(() => tickets.addBulk(some))
        }
      })

    return {
      /** Writes what is not there yet; of what is due at once as many as may bring somebody: true when that is none. */
      write: (given: ReadonlyArray<Ticket>) =>
        Effect.gen(function* () {
          const [later, now] = Array.partition(given, ({ delay }) => Duration.equals(delay, Duration.zero))
          const wanted = now.length < few ? now.length : enough - (yield* waiting)
          yield* add([...later, ...now.slice(0, Math.max(0, wanted))])
          return now.length > 0 && wanted <= 0
        }),
      /** How many wait for a worker. */
      waiting
    }
  })

export type Tickets = Effect.Effect.Success<ReturnType<typeof makeTickets>>
