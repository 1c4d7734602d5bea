/** The cut-over: requests of the tenant pause, the last changes are copied, and then the other side serves it. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Wire from "../../domain/accounts/TenantMove.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { MoveFailed } from "./Side.ts"
import { carryJobs, catchUp, copyLastChanges, type Transfer } from "./Transfer.ts"

/** Time for running jobs to end. After it they are stopped, and run again at the other side. */
const maxDrainTime = Duration.seconds(30)
/** Maximum time for which a side holds jobs if the command does not continue. */
const maxDrainHold = Duration.seconds(60)
/** Parts of the pause, each from its beginning: turns may end, the decision is made, jobs are carried over. */
const turnsShare = 0.5
const decisionShare = 0.85
const carryShare = 0.9
const pollInterval = Duration.millis(40)
const releaseTimeout = Duration.seconds(1)
/** Number of attempts that end the pause rather than running turns, and the time between attempts. */
const attemptsWithoutEnding = 5
const attemptInterval = Duration.seconds(2)
/** Maximum number of changes that are left to copy when the pause begins. */
const maxChangesLeft = 50

export interface CutOverOptions {
  /** Maximum time for which requests of the tenant wait. */
  readonly maxPause: Duration.Duration
  /** Fails instead of ending turns that run longer than the pause. */
  readonly keepTurns: boolean
}

const progressOf = ({ from }: Transfer) => from.ask(new Wire.Progress())

/** Waits until `done`, and copies changes meanwhile. True when that was in time. */
const waitUntil = (
  transfer: Transfer,
  limit: Duration.Duration,
  done: (progress: { readonly turns: number; readonly jobs: number }) => boolean
) =>
  Effect.gen(function* () {
    const end = (yield* monotonicMillis) + Duration.toMillis(limit)
    for (;;) {
      const progress = yield* progressOf(transfer)
      if (done(progress)) return true
      if ((yield* monotonicMillis) >= end) return false
      yield* catchUp(transfer, maxChangesLeft)
      yield* Effect.sleep(pollInterval)
    }
  })

const takenOverError = () =>
  new MoveFailed({
    reason: "taken",
    message: "Another command has taken over the move. Nothing was cut over."
  })

const hold = ({ driver, from }: Transfer, to: "draining" | "pausing", maxTime: Duration.Duration) =>
  Effect.filterOrFail(
    from.ask(new Wire.Hold({ driver, to, millis: Duration.toMillis(maxTime) })),
    ({ changed }) => changed,
    takenOverError
  )

/** No job begins, and those that run end or wait. */
const drainJobs = (transfer: Transfer) =>
  Effect.gen(function* () {
    const { driver, from } = transfer
    yield* hold(transfer, "draining", maxDrainHold)
    const ended = yield* waitUntil(transfer, maxDrainTime, ({ jobs }) => jobs === 0)
    if (!ended) yield* from.ask(new Wire.EndRunning({ driver, turns: false, jobs: true }))
    yield* catchUp(transfer, maxChangesLeft)
  })

/**
 * One attempt. `turns`: turns still ran and the pause was ended. `late`: the pause was over before the decision.
 */
const attempt = (transfer: Transfer, maxPause: Duration.Duration, mayEndTurns: boolean) =>
  Effect.gen(function* () {
    const { driver, from, to } = transfer
    yield* drainJobs(transfer)
    const began = yield* monotonicMillis
    /** Time left until this share of the pause is over. */
    const timeLeft = (share: number) =>
      Effect.map(monotonicMillis, (now) =>
        Math.max(0, Math.round(began + share * Duration.toMillis(maxPause) - now))
      )
    // No decision is made later, so that the rest is for the other side to begin.
    yield* hold(transfer, "pausing", Duration.times(maxPause, decisionShare))
    const turnsWait = Duration.times(maxPause, turnsShare)
    const isQuiet = yield* waitUntil(transfer, turnsWait, ({ jobs, turns }) => jobs === 0 && turns === 0)
    if (!isQuiet) {
      if (!mayEndTurns) return "turns" as const
      yield* from.ask(new Wire.EndRunning({ driver, turns: true, jobs: true }))
    }
    const millis = yield* timeLeft(decisionShare)
    const fenced = yield* from.ask(new Wire.Fence({ driver, millis, awaitsTurns: isQuiet }))
    if (!fenced.changed) return "late" as const
    yield* copyLastChanges(transfer)
    const decided = yield* from.ask(new Wire.HandOver({ driver }))
    const { move } = yield* progressOf(transfer)
    // The answer to the decision may have been lost, so the stored state counts.
    if (!decided.changed && move?.state !== "away") return "late" as const
    // From here on the jobs are the other side's. They come before those that it queues itself.
    yield* carryJobs(transfer, Duration.millis(yield* timeLeft(carryShare)))
    yield* to.ask(new Wire.Serve({ driver, handovers: move?.handovers ?? 0 }))
    return { pausedMillis: (yield* monotonicMillis) - began, at: yield* Clock.currentTimeMillis }
  })

/** Tries until the tenant has changed sides. Returns how long it paused, in milliseconds. */
export const cutOver = (transfer: Transfer, { keepTurns, maxPause }: CutOverOptions) =>
  Effect.gen(function* () {
    const { driver, from, report } = transfer
    for (let count = 1; ; count += 1) {
      const isLast = count > attemptsWithoutEnding
      const outcome = yield* attempt(transfer, maxPause, isLast && !keepTurns).pipe(
        // Otherwise the tenant would be served again only when the hold ends by itself.
        Effect.onError(() =>
          // Finalizers cannot be interrupted: without this, the time-out would wait for an origin that is unreachable.
          Effect.interruptible(from.ask(new Wire.Release({ driver }))).pipe(
            Effect.timeout(releaseTimeout),
            Effect.ignore
          )
        )
      )
      if (typeof outcome !== "string") return outcome.pausedMillis
      yield* from.ask(new Wire.Release({ driver }))
      if (isLast && (keepTurns || count > 2 * attemptsWithoutEnding))
        return yield* new MoveFailed({
          reason: "refused",
          message:
            outcome === "turns"
              ? "Turns of the tenant always run longer than the pause. Nothing was cut over. Run the command again at a quieter time, or without --keep-turns."
              : "The last changes cannot be copied within the pause. Nothing was cut over. Run the command again at a quieter time."
        })
      yield* report(
        outcome === "turns"
          ? "turns still run; the tenant is served on, and the next attempt follows"
          : "the pause was too short; the tenant is served on, and the next attempt follows"
      )
      yield* Effect.sleep(attemptInterval)
    }
  })
