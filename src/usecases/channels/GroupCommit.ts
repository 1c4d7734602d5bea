/**
 * Group commit: deliveries that arrive during a transaction share the next one. With 64 connections, one commit serves
 * all of them. Each delivery is answered after its commit, and one that cannot be stored fails alone.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { Arrival } from "../../domain/channels/Channel.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { FairLimiter, type Permit } from "../../concurrency/FairLimiter.ts"
import { FairQueue } from "../../concurrency/FairQueue.ts"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Maximum deliveries of one transaction. */
const maxBatchSize = 128
/**
 * Maximum waiting deliveries, and maximum bytes of them together. Further ones are answered 503. Accounts are served
 * round-robin; one account may hold half of the bytes.
 */
const maxWaiting = 1_024
const maxBytes = 64 * MiB
/** How long a batch waits for more deliveries when it has fewer than half as many as the batch before. */
const batchDelay = Duration.millis(1)
/** A transaction that takes longer is rolled back. */
const transactionTimeout = Duration.seconds(20)
/** Milliseconds without a delivery that count as a pause. */
const quietAfterMs = 5
/** Poll interval and longest wait of background work for such a pause, in milliseconds. */
const quietPollMs = 20
const maxQuietWaitMs = 200

type Accept = (arrivals: ReadonlyArray<Arrival>) => Effect.Effect<ReadonlyArray<boolean>, unknown>

/** For each arrival, whether it is new. */
export type Outcome = Exit.Exit<ReadonlyArray<boolean>, ServiceUnavailable>

interface Waiting {
  readonly arrivals: ReadonlyArray<Arrival>
  readonly memory: Permit
  readonly done: (outcome: Outcome) => void
}

export const notQueued = () =>
  new ServiceUnavailable({ message: "The delivery could not be queued. Deliver it again." })

/** True when one delivery's data may have caused the failure. The deliveries are then stored one by one. */
const mayBeOneDelivery = (cause: Cause.Cause<unknown>): boolean =>
  Cause.isDie(cause) || Predicate.isTagged(Cause.squash(cause), "InboundEventRefused")

/**
 * Runs until the scope closes. `accept` stores all of its arrivals or none, and returns for each whether it was new.
 */
export const make = (accept: Accept) =>
  Effect.gen(function* () {
    const waiting = new FairQueue<Waiting>(maxWaiting)
    const memory = new FairLimiter({
      name: "delivery-bytes",
      permits: maxBytes,
      maxPermitsPerOwner: maxBytes / 2
    })
    const hasWaiting = yield* Effect.makeLatch(false)
    const clock = yield* Effect.clock
    let lastArrivalAt = Number.NEGATIVE_INFINITY

    /** Takes the next deliveries, round-robin over accounts. */
    const takeBatch = (size: number): Array<Waiting> => {
      const batch: Array<Waiting> = []
      while (batch.length < size) {
        const next = waiting.shift()
        if (next === null) break
        batch.push(next.item)
      }
      if (waiting.size === 0) hasWaiting.unsafeClose()
      return batch
    }

    const attempt = (arrivals: ReadonlyArray<Arrival>) =>
      Effect.exit(
        Effect.timeoutFail(accept(arrivals), {
          duration: transactionTimeout,
          onTimeout: () => new Cause.TimeoutException()
        })
      )

    const refuse = (one: Waiting, cause: Cause.Cause<unknown>) =>
      Effect.zipRight(
        Effect.logError("A delivery could not be queued", cause),
        Effect.sync(() => one.done(Exit.fail(notQueued())))
      )

    /** Answers each delivery with its part of the batch's result. */
    const resolveAll = (
      batch: ReadonlyArray<Waiting>,
      isNew: ReadonlyArray<boolean>,
      unanswered: Set<Waiting>
    ) => {
      let offset = 0
      for (const one of batch) {
        const from = offset
        offset += one.arrivals.length
        unanswered.delete(one)
        one.done(Exit.succeed(isNew.slice(from, offset)))
      }
    }

    const commit = (batch: ReadonlyArray<Waiting>, unanswered: Set<Waiting>): Effect.Effect<void> =>
      Effect.flatMap(attempt(batch.flatMap(({ arrivals }) => arrivals)), (outcome) => {
        if (Exit.isSuccess(outcome)) return Effect.sync(() => resolveAll(batch, outcome.value, unanswered))
        const storeSeparately = batch.length > 1 && mayBeOneDelivery(outcome.cause)
        return Effect.forEach(
          batch,
          (one) => {
            if (storeSeparately) return commit([one], unanswered)
            unanswered.delete(one)
            return refuse(one, outcome.cause)
          },
          { discard: true }
        )
      })

    const refuseAll = (left: Iterable<Waiting>) =>
      Effect.sync(() => {
        for (const one of left) one.done(Exit.fail(notQueued()))
      })

    let previousSize = 0
    /** Adds the deliveries that wait, and those that arrive within the batch delay after a larger batch. */
    const gather = (batch: Array<Waiting>, unanswered: Set<Waiting>) => {
      const others = Effect.sync(() => {
        for (const one of takeBatch(maxBatchSize - batch.length)) {
          batch.push(one)
          unanswered.add(one)
        }
      })
      const waitForOthers = Effect.when(
        Effect.zipRight(Effect.sleep(batchDelay), others),
        () => batch.length * 2 < previousSize
      )
      return Effect.zipRight(Effect.zipRight(yieldToEventLoop, others), waitForOthers)
    }

    const commitBatch = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(hasWaiting.await), () => {
        const batch = takeBatch(maxBatchSize)
        const unanswered = new Set(batch)
        const work = Effect.suspend(() => {
          previousSize = batch.length
          return commit(batch, unanswered)
        })
        return restore(Effect.zipRight(gather(batch, unanswered), work)).pipe(
          Effect.ensuring(Effect.suspend(() => refuseAll(unanswered))),
          Effect.ensuring(
            Effect.sync(() => {
              for (const one of batch) one.memory.release()
            })
          )
        )
      })
    )
    yield* Effect.forkScoped(Effect.forever(commitBatch))
    yield* Effect.addFinalizer(() => Effect.suspend(() => refuseAll(takeBatch(maxWaiting))))

    /** Calls `done` when all arrivals are durable or have failed. `size` is in bytes. */
    const add = (arrivals: ReadonlyArray<Arrival>, size: number, done: (outcome: Outcome) => void): void => {
      const [first] = arrivals
      if (first === undefined) return done(Exit.succeed([]))
      lastArrivalAt = clock.unsafeCurrentTimeMillis()
      const owner = `${first.event.channel}:${first.event.accountId}`
      const permit = memory.tryAcquire(owner, { amount: size })
      if (permit === null) return done(Exit.fail(notQueued()))
      const added = waiting.add(owner, { arrivals, memory: permit, done })
      const refused = added === null ? { memory: permit, done } : added.displaced?.item
      hasWaiting.unsafeOpen()
      if (refused === undefined) return
      refused.memory.release()
      refused.done(Exit.fail(notQueued()))
    }

    const waitForPause = (until: number, first: boolean): Effect.Effect<void> =>
      Effect.suspend(() => {
        const now = clock.unsafeCurrentTimeMillis()
        if (now >= until || (memory.held === 0 && now - lastArrivalAt >= quietAfterMs)) return Effect.void
        const wait = Math.min(first ? quietAfterMs : quietPollMs, until - now)
        return Effect.zipRight(Effect.sleep(Duration.millis(wait)), waitForPause(until, false))
      })
    /** Waits for a pause between deliveries, at most 200 milliseconds, so that background work does not delay them. */
    const quietPeriod = Effect.suspend(() =>
      waitForPause(clock.unsafeCurrentTimeMillis() + maxQuietWaitMs, true)
    )

    return { add, quietPeriod } as const
  })
