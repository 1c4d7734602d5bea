import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"

/**
 * Releases at once what `acquisition` has acquired when it fails or is interrupted. `SqlClient.withTransaction` and
 * `RcRef` do not close the scope of an acquisition that fails.
 */
export const releasedOnFailure = <A, E, R>(
  acquisition: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
      return yield* Effect.onExit(restore(Scope.extend(acquisition, scope)), (exit) =>
        Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void
      )
    })
  )
