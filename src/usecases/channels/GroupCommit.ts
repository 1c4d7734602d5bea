/**
 * Deliveries that arrive while a transaction is under way share the next one: at 64 connections the database commits
 * once for all of them. Each is answered after its commit, and one that cannot be stored fails alone.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import type { Arrival } from "../../domain/Channel.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { pause } from "../../domain/Pause.ts"

/** Deliveries of one transaction at most. */
const mostTogether = 128
/** Deliveries and bytes that wait at most; whoever comes then is told to come again. */
const mostWaiting = 1_024
const mostBytes = 64 * 1_048_576
/** Whoever was answered may be about to deliver the next: so long they are waited for when fewer than half are there. */
const gathering = Duration.millis(1)
/** A transaction that takes longer is rolled back. */
const patience = Duration.seconds(20)
/** Milliseconds without a delivery after which the stream of them has ebbed away. */
const ebb = 5
/** Milliseconds: how often whoever waits for that looks, and how long they wait at most. */
const look = 20
const longest = 200

type Accept = (arrivals: ReadonlyArray<Arrival>) => Effect.Effect<ReadonlyArray<boolean>, unknown>

/** Says of each arrival whether it was new. */
export type Outcome = Exit.Exit<ReadonlyArray<boolean>, ServiceUnavailable>

interface Waiting {
  readonly arrivals: ReadonlyArray<Arrival>
  readonly bytes: number
  readonly done: (outcome: Outcome) => void
}

const notQueued = () => new ServiceUnavailable({ message: "Nothing could be queued. Deliver it again." })

/** Something about the data, or a defect that it brought about: alone, each may yet succeed. */
const mayBeOneOfThem = (cause: Cause.Cause<unknown>): boolean =>
  Cause.isDie(cause) || Predicate.isTagged(Cause.squash(cause), "InboxRefusal")

/** Runs until the scope closes. `accept` takes all of its arrivals or none, and says of each whether it was new. */
export const make = (accept: Accept) =>
  Effect.gen(function* () {
    const waiting = yield* Queue.dropping<Waiting>(mostWaiting)
    const clock = yield* Effect.clock
    let bytes = 0
    let last = Number.NEGATIVE_INFINITY

    const attempt = (arrivals: ReadonlyArray<Arrival>) =>
      Effect.exit(
        Effect.timeoutFail(accept(arrivals), {
          duration: patience,
          onTimeout: () => new Cause.TimeoutException()
        })
      )

    const refuse = (one: Waiting, cause: Cause.Cause<unknown>) =>
      Effect.zipRight(
        Effect.logError("A delivery could not be queued", cause),
        Effect.sync(() => one.done(Exit.fail(notQueued())))
      )

    /** Each its part of what was found of all. */
    const answer = (
      batch: ReadonlyArray<Waiting>,
      fresh: ReadonlyArray<boolean>,
      unanswered: Set<Waiting>
    ) => {
      let taken = 0
      for (const one of batch) {
        const from = taken
        taken += one.arrivals.length
        unanswered.delete(one)
        one.done(Exit.succeed(fresh.slice(from, taken)))
      }
    }

    const commit = (batch: ReadonlyArray<Waiting>, unanswered: Set<Waiting>): Effect.Effect<void> =>
      Effect.flatMap(attempt(batch.flatMap(({ arrivals }) => arrivals)), (outcome) => {
        if (Exit.isSuccess(outcome)) return Effect.sync(() => answer(batch, outcome.value, unanswered))
        const apart = batch.length > 1 && mayBeOneOfThem(outcome.cause)
        return Effect.forEach(
          batch,
          (one) => {
            if (apart) return commit([one], unanswered)
            unanswered.delete(one)
            return refuse(one, outcome.cause)
          },
          { discard: true }
        )
      })

    const giveUp = (left: Iterable<Waiting>) =>
      Effect.sync(() => {
        for (const one of left) one.done(Exit.fail(notQueued()))
      })

    let before = 0
    /** Takes along who is here already, and who comes within a moment where far more came the last time. */
    const gather = (batch: Array<Waiting>, unanswered: Set<Waiting>) => {
      const others = Effect.map(
        Effect.suspend(() => Queue.takeUpTo(waiting, mostTogether - batch.length)),
        (taken) => {
          for (const one of taken) {
            batch.push(one)
            unanswered.add(one)
          }
        }
      ).pipe(Effect.uninterruptible)
      const awaited = Effect.when(
        Effect.zipRight(Effect.sleep(gathering), others),
        () => batch.length * 2 < before
      )
      return Effect.zipRight(Effect.zipRight(pause, others), awaited)
    }

    const round = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(Queue.takeBetween(waiting, 1, mostTogether)), (first) => {
        const batch = [...first]
        const unanswered = new Set(batch)
        const work = Effect.suspend(() => {
          before = batch.length
          return commit(batch, unanswered)
        })
        return restore(Effect.zipRight(gather(batch, unanswered), work)).pipe(
          Effect.ensuring(Effect.suspend(() => giveUp(unanswered))),
          Effect.ensuring(Effect.sync(() => (bytes -= batch.reduce((sum, one) => sum + one.bytes, 0))))
        )
      })
    )
    yield* Effect.forkScoped(Effect.forever(round))
    yield* Effect.addFinalizer(() => Effect.flatMap(Queue.takeAll(waiting), giveUp))

    /** Calls `done` once all of them are durable, or are not going to be. `size` in bytes. */
    const add = (arrivals: ReadonlyArray<Arrival>, size: number, done: (outcome: Outcome) => void): void => {
      if (arrivals.length === 0) return done(Exit.succeed([]))
      last = clock.unsafeCurrentTimeMillis()
      const taken = bytes + size <= mostBytes && waiting.unsafeOffer({ arrivals, bytes: size, done })
      if (!taken) return done(Exit.fail(notQueued()))
      bytes += size
    }

    const ebbed = (until: number, first: boolean): Effect.Effect<void> =>
      Effect.suspend(() => {
        const now = clock.unsafeCurrentTimeMillis()
        if (now >= until || (bytes === 0 && now - last >= ebb)) return Effect.void
        const wait = Math.min(first ? ebb : look, until - now)
        return Effect.zipRight(Effect.sleep(Duration.millis(wait)), ebbed(until, false))
      })
    /** Waits while deliveries stream in, for a fifth of a second at most: what can be done later makes room for them. */
    const calm = Effect.suspend(() => ebbed(clock.unsafeCurrentTimeMillis() + longest, true))

    return { add, calm } as const
  })
