/** Retries writes that must succeed, for as long as the database is unavailable. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

const retrySchedule = Schedule.recurUpTo("10 minutes").pipe(Schedule.addDelay(() => "1 second"))

/**
 * Runs `ending`, the write that ends a failed turn. No other process ends the runs of a living one, so a write that
 * fails is retried in `scope` until the database is back. The caller does not wait for the retries.
 */
export const retryUntilWritten =
  (scope: Scope.Scope) =>
  <A, E, R>(ending: Effect.Effect<A, E, R>): Effect.Effect<void, never, R> =>
    ending.pipe(
      Effect.asVoid,
      Effect.catchAllCause((cause) =>
        Effect.logWarning("A failed turn could not be settled yet", cause).pipe(
          Effect.zipRight(Effect.forkIn(Effect.retry(Effect.sandbox(ending), retrySchedule), scope)),
          Effect.asVoid
        )
      )
    )
