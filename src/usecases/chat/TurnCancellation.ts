/** Cancels a turn from outside: on request, or at the turn's time-out. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { RuntimeTimeout } from "../../domain/Errors.ts"
import { runtimeTimeout } from "./ModelStep.ts"

type Reason = "requested" | "timedOut"

/** Completed when the turn must end. The first reason is kept. */
export type TurnCancellation = Deferred.Deferred<Reason>

export const make: Effect.Effect<TurnCancellation> = Deferred.make()

export const request = (cancellation: TurnCancellation) => Deferred.succeed(cancellation, "requested")

export const timeOut = (cancellation: TurnCancellation) => Deferred.succeed(cancellation, "timedOut")

/**
 * Runs `effect` and interrupts it when the turn is cancelled. After the interruption it fails with RUNTIME_TIMEOUT for
 * a time-out, and continues with `otherwise` for a request.
 */
export const unlessCancelled = <A, E, R, A2, E2, R2>(
  cancellation: TurnCancellation,
  effect: Effect.Effect<A, E, R>,
  otherwise: Effect.Effect<A2, E2, R2>
): Effect.Effect<A | A2, E | E2 | RuntimeTimeout, R | R2> => {
  const cancelled = (reason: Reason): Effect.Effect<A2, E2 | RuntimeTimeout, R2> =>
    reason === "timedOut" ? Effect.fail(runtimeTimeout()) : otherwise
  const reason = Effect.map(Deferred.await(cancellation), (why): Either.Either<A, Reason> => Either.left(why))
  const value = Effect.map(effect, (done): Either.Either<A, Reason> => Either.right(done))
  return Effect.flatMap(Deferred.isDone(cancellation), (isDone) =>
    Effect.flatMap(
      isDone ? reason : Effect.raceFirst(value, reason),
      (outcome): Effect.Effect<A | A2, E2 | RuntimeTimeout, R2> =>
        Either.isRight(outcome) ? Effect.succeed(outcome.right) : cancelled(outcome.left)
    )
  )
}
