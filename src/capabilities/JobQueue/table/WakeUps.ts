/**
 * When a worker looks for a job that has been announced. PostgreSQL tells every process of every job, and one of them gets
 * it. So a worker that found nothing waits a random while before it looks again, and what is announced meanwhile takes one
 * look; a worker that finds jobs looks at once. With sixteen worker processes and 20 jobs a second that makes 11 transactions
 * a job, where looking at once took 18 (bench/queue.mjs).
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"

const minDelayMillis = 8
const maxDelayMillis = 500

/** The longest delay of the next look: halved after a look that found a job, doubled after one that did not. */
const nextDelay = (delayMillis: number, found: boolean): number => {
  if (!found) return Math.min(maxDelayMillis, Math.max(minDelayMillis, delayMillis * 2))
  return delayMillis > minDelayMillis ? delayMillis / 2 : 0
}

export const makeWakeUps = Effect.gen(function* () {
  const announcements = yield* Queue.sliding<void>(1)
  let delayMillis = 0
  let found = true
  return {
    /** A job has been put in. */
    announced: Effect.asVoid(Queue.offer(announcements, undefined)),
    /** The worker has got a job. */
    began: Effect.sync(() => {
      found = true
    }),
    /** Runs `look` for what is announced, until it is interrupted. */
    run: (look: Effect.Effect<void>) =>
      Queue.take(announcements).pipe(
        Effect.zipRight(Random.next),
        Effect.flatMap((share) => {
          delayMillis = nextDelay(delayMillis, found)
          found = false
          return Effect.sleep(delayMillis * share)
        }),
        Effect.zipRight(look),
        Effect.forever
      )
  } as const
})
