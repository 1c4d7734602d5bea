/**
 * One worker of one queue. It claims when woken, renews the leases of running jobs, and prunes ended ones.
 *
 * A wake-up is stored until the loop checks; several count as one. The loop also checks at least every five seconds,
 * because a notification can be lost. A job stays in `running` from its claim until its result is written. `idle` is
 * open when there is none.
 */
import { SqlError } from "@effect/sql/SqlError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../../../domain/MonotonicClock.ts"
import { randomUUID } from "node:crypto"
import type { JobFailure, QueueJob, QueuePolicy } from "../../JobQueue.ts"
import { withOwner } from "../../../concurrency/CurrentOwner.ts"
import { DurationHistogram } from "../../../concurrency/DurationHistogram.ts"
import { interruptHandler, registerFailures, type RunningJob, settle } from "./RunningJob.ts"
import type { QueueName } from "../../../domain/knowledge/Job.ts"
import { type Claimed, groupOf, type Running } from "./Claim.ts"
import { claimKey, type Rows } from "./Rows.ts"

export interface WorkerOptions<R> {
  readonly queue: QueueName
  readonly policy: QueuePolicy
  readonly concurrency: number
  readonly handler: (job: QueueJob) => Effect.Effect<void, JobFailure, R>
  readonly onDead: (job: QueueJob) => Effect.Effect<void, never, R>
}

const waits = new DurationHistogram<{ readonly queue: QueueName }>(
  "spoke_queue_wait_seconds",
  "How long a job had been due when a worker took it, by queue"
)

interface State {
  readonly queue: QueueName
  readonly policy: QueuePolicy
  readonly concurrency: number
  readonly rows: Rows
  readonly lease: Duration.Duration
  readonly running: Map<string, RunningJob>
  /** The owner after which the next claim continues. */
  cursor: string
  readonly idle: Effect.Latch
  readonly wakes: Queue.Queue<void>
  readonly finished: Queue.Queue<void>
}

type Worker<R> = WorkerOptions<R> & State

const maxPollInterval = Duration.seconds(5)
/** Maximum number of consecutive claims to find a job. Each examines some of the owners. */
const maxClaims = 100
/** Minimum polling interval in milliseconds. */
const minPollMs = 20
/** Maximum interval of renewals, which also notice that a job was removed. */
const maxRenewInterval = Duration.seconds(10)
/** Minimum time-out of a renewal of leases. */
const minRenewalTimeout = Duration.seconds(1)
/** Polling interval in milliseconds while the owners of all jobs with expired leases use all their slots. */
const blockedPollMs = 1_000
const pruneInterval = Duration.seconds(1)
/** How long the shutdown waits for handlers that ignore interruption. */
const drainTimeout = Duration.seconds(5)

const wake = ({ wakes }: State) => Effect.asVoid(Queue.offer(wakes, undefined))

const releaseJob = (worker: State, held: RunningJob) =>
  Effect.gen(function* () {
    worker.running.delete(claimKey(held))
    if (worker.running.size === 0) yield* worker.idle.open
    yield* Queue.offer(worker.finished, undefined)
    yield* wake(worker)
  })

const run = <R>(worker: Worker<R>, held: RunningJob): Effect.Effect<void, never, R> => {
  const attributes = { queue: worker.queue, job: held.id, attempt: held.job.attempt }
  return (held.dead ? worker.onDead(held.job) : worker.handler(held.job)).pipe(
    // Limits are shared by tenant, and row level security shows the tenant's rows.
    withOwner(groupOf(held.owner)),
    Effect.interruptible,
    Effect.exit,
    Effect.flatMap((exit) => settle(worker.rows, worker.policy, held, exit)),
    Effect.ensuring(releaseJob(worker, held)),
    Effect.annotateLogs(attributes),
    Effect.withSpan("JobQueue.run", { root: true, attributes })
  )
}

const isUniqueViolation = (error: unknown) =>
  error instanceof SqlError && Predicate.hasProperty(error.cause, "code") && error.cause.code === "23505"

const runningJobOf = (queue: QueueName, row: Claimed, token: string, renewedAt: number): RunningJob => ({
  id: row.id,
  token,
  job: {
    id: row.id,
    queue,
    payload: row.payload,
    attempt: row.attempts,
    lastAttempt: row.attempts >= row.maxAttempts
  },
  owner: row.owner,
  dead: row.dead,
  renewedAt,
  interruption: undefined,
  fiber: undefined
})

/** Numbers of running jobs of each owner and each group of owners. */
const runningOf = ({ running }: State): Running => {
  const owners: Record<string, number> = {}
  const groups: Record<string, number> = {}
  for (const { owner } of running.values()) {
    const group = groupOf(owner)
    owners[owner] = (owners[owner] ?? 0) + 1
    groups[group] = (groups[group] ?? 0) + 1
  }
  return { owners, groups }
}

/** Number of the worker's slots in a share, at least one. */
const slotsOf = (worker: State, share = 1) => Math.max(1, Math.floor(worker.concurrency * share))

/** Claims jobs for the free slots, and starts them. Returns their fibers. */
const claimAndStart = <R>(worker: Worker<R>, freeSlots: number) =>
  Effect.gen(function* () {
    if (freeSlots <= 0) return []
    const token = randomUUID()
    const renewedAt = yield* monotonicMillis
    const running = runningOf(worker)
    const shares = {
      perOwner: slotsOf(worker, worker.policy.ownerShare),
      perGroup: slotsOf(worker, worker.policy.groupShare)
    }
    const claim = Effect.suspend(() => {
      const request = {
        limit: freeSlots,
        token,
        lease: worker.lease,
        after: worker.cursor,
        ...shares,
        running
      }
      return worker.rows.claim(worker.queue, request)
    }).pipe(
      Effect.tap(({ cursor }) => {
        worker.cursor = cursor
      })
    )
    const seen = new Set<string>()
    /** Adds the owners of a claim. False when one of them was seen before, because the round is complete. */
    const addIfNew = (owners: ReadonlyArray<string>) => {
      const before = seen.size
      for (const owner of owners) seen.add(owner)
      return seen.size === before + owners.length
    }
    const { isPartial, jobs: claimed } = yield* claim.pipe(
      // No examined owner has a job that can be claimed now, but other owners may have one.
      Effect.repeat({
        while: ({ isPartial, jobs, examinedOwners }) =>
          isPartial && jobs.length === 0 && addIfNew(examinedOwners),
        times: maxClaims
      }),
      // Another worker has claimed a job of the same serial key at the same time. Claim again.
      Effect.catchIf(isUniqueViolation, () => Effect.as(wake(worker), { jobs: [], isPartial: false }))
    )
    // Owners that this claim did not reach may have due jobs.
    if (isPartial && claimed.length > 0 && claimed.length < freeSlots) yield* wake(worker)
    if (claimed.length > 0) yield* worker.idle.close
    return yield* Effect.forEach(claimed, (row) => {
      if (row.waitedMillis !== null) waits.observe(row.waitedMillis, { queue: worker.queue })
      const held = runningJobOf(worker.queue, row, token, renewedAt)
      worker.running.set(claimKey(held), held)
      return Effect.tap(Effect.forkDaemon(run(worker, held)), (fiber) => {
        held.fiber = fiber
      })
    })
    // An interruption between claim and start would lose the jobs until their leases expire.
  }).pipe(Effect.uninterruptible)

const waitForWork = (worker: State) =>
  Effect.gen(function* () {
    const next = yield* worker.rows.nextDue(worker.queue)
    const wait = Option.match(next, {
      onNone: () => maxPollInterval,
      // A lease expired a while ago and its job was not claimed, because its owner uses all its slots.
      onSome: (milliseconds) =>
        Duration.min(
          maxPollInterval,
          Duration.millis(milliseconds < -blockedPollMs ? blockedPollMs : Math.max(minPollMs, milliseconds))
        )
    })
    yield* Effect.timeoutOption(Queue.take(worker.wakes), wait)
  })

const loop = <R>(worker: Worker<R>) =>
  Effect.gen(function* () {
    const freeSlots = worker.concurrency - worker.running.size
    const mayHaveMore = (yield* claimAndStart(worker, freeSlots)).length === freeSlots
    // Without a free slot, the end of a job wakes the loop.
    if (worker.running.size >= worker.concurrency) yield* Queue.take(worker.wakes)
    else if (!mayHaveMore) yield* waitForWork(worker)
  }).pipe(
    Effect.catchAllCause((cause) =>
      Effect.zipRight(
        Effect.logWarning("The job queue cannot be reached; trying again", cause),
        Effect.sleep("1 second")
      )
    ),
    Effect.forever
  )

const heartbeat = (worker: State) => {
  const renewInterval = Duration.min(Duration.times(worker.lease, 1 / 3), maxRenewInterval)
  /** Time until the first of these leases expires. */
  const timeLeft = (all: ReadonlyArray<RunningJob>, now: number) =>
    Duration.millis(
      Math.max(0, Math.min(...all.map(({ renewedAt }) => renewedAt)) + Duration.toMillis(worker.lease) - now)
    )
  const renewLeases = Effect.gen(function* () {
    const before = yield* monotonicMillis
    const all = [...worker.running.values()].filter(
      ({ fiber, interruption }) => interruption === undefined && fiber !== undefined
    )
    if (all.length === 0) return renewInterval
    // An expired lease may still be ours, as after a pause of the process.
    const timeout = Duration.min(renewInterval, Duration.max(minRenewalTimeout, timeLeft(all, before)))
    const renewed = yield* Effect.option(Effect.timeout(worker.rows.renew(all, worker.lease), timeout))
    const now = yield* monotonicMillis
    for (const held of all) {
      const isHeld = Option.map(renewed, (claims) => claims.has(claimKey(held)))
      // If renewing fails, the lease is held until it must have expired.
      const isExpired = now - held.renewedAt >= Duration.toMillis(worker.lease)
      if (Option.contains(isHeld, true)) held.renewedAt = before
      else if (Option.isSome(isHeld) || isExpired) yield* interruptHandler(held, "lost")
    }
    return Option.isSome(renewed) ? renewInterval : Duration.min(renewInterval, timeLeft(all, now))
  })
  return Effect.forever(Effect.flatMap(renewLeases, Effect.sleep))
}

const prune = (worker: State) =>
  Effect.gen(function* () {
    const done = yield* Effect.orElseSucceed(worker.rows.prune(worker.queue, worker.policy), () => false)
    yield* Effect.sleep(pruneInterval)
    if (done) yield* Queue.take(worker.finished)
  }).pipe(Effect.forever)

const repairAfterClockSetBack = (worker: State) =>
  worker.rows
    .repairAfterClockSetBack(worker.queue, worker.lease)
    .pipe(Effect.zipRight(wake(worker)), Effect.ignore, Effect.repeat(Schedule.spaced("1 minute")))

/** Also works where nothing can be interrupted, as in a finalizer. */
const waitAtMost = (effect: Effect.Effect<void>, limit: Duration.DurationInput) =>
  Effect.timeoutOption(Effect.interruptible(effect), limit)

const stop = (worker: State) =>
  Effect.gen(function* () {
    yield* waitAtMost(worker.idle.await, worker.policy.drain)
    for (const held of worker.running.values()) yield* interruptHandler(held, "stopped")
    yield* waitAtMost(worker.idle.await, drainTimeout)
  })

/** Starts a worker that checks for jobs by itself. Returns an effect that makes it check at once. */
export const startWorker = <R>(rows: Rows, options: WorkerOptions<R>) =>
  Effect.gen(function* () {
    const worker: Worker<R> = {
      ...options,
      rows,
      lease: Duration.decode(options.policy.lease),
      running: new Map(),
      cursor: "",
      idle: yield* Effect.makeLatch(true),
      wakes: yield* Queue.sliding<void>(1),
      finished: yield* Queue.sliding<void>(1)
    }
    waits.register({ queue: options.queue })
    yield* registerFailures(options.queue)
    // Finalizers run in reverse order: first no more claims, then the end of running jobs, then of their heartbeat.
    yield* Effect.forkScoped(Effect.interruptible(heartbeat(worker)))
    yield* Effect.forkScoped(Effect.interruptible(prune(worker)))
    yield* Effect.forkScoped(Effect.interruptible(repairAfterClockSetBack(worker)))
    yield* Effect.addFinalizer(() => stop(worker))
    yield* Effect.forkScoped(Effect.interruptible(loop(worker)))
    return wake(worker)
  })
