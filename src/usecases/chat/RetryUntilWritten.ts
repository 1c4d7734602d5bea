/** Retries writes that must succeed, also while the database is away for a while. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

const again = Schedule.recurUpTo("10 minutes").pipe(Schedule.addDelay(() => "1 second"))

/**
 * Ends a failed turn. While this process lives no other one ends its runs: should it fail, it goes on trying in `scope` until
 * the database is back, and the caller does not wait for that.
 */
export const retryUntilWritten =
  (scope: Scope.Scope) =>
  <A, E, R>(ending: Effect.Effect<A, E, R>): Effect.Effect<void, never, R> =>
    ending.pipe(
      Effect.asVoid,
      Effect.catchAllCause((cause) =>
        Effect.logWarning("A failed turn could not be settled yet", cause).pipe(
          Effect.zipRight(Effect.forkIn(Effect.retry(Effect.sandbox(ending), again), scope)),
          Effect.asVoid
        )
      )
    )
