/** Requests to the outside that belong to a transaction, but must not be sent before it is committed. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import { inOwnFiber } from "./InOwnFiber.ts"

/** Maximum number of effects that run at the same time. */
const maxConcurrent = 8

/** What follows the transaction that this fiber is in; null outside of {@link withCommit}. */
const following: FiberRef.FiberRef<Array<Effect.Effect<void>> | null> = globalValue(
  "spoke/concurrency/AfterCommit",
  () => FiberRef.unsafeMake<Array<Effect.Effect<void>> | null>(null)
)

/** Runs the effect after the commit of the transaction of {@link withCommit}, or now where there is none. */
export const afterCommit = (effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(FiberRef.get(following), (effects) =>
    effects === null ? inOwnFiber(effect) : Effect.sync(() => void effects.push(effect))
  )

/**
 * Runs `transaction`, and then the effects that were left for it; inside of another one they are left for that. A
 * transaction that fails drops them.
 */
export const withCommit = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  // What follows a commit is not dropped when the caller is interrupted.
  Effect.uninterruptibleMask((restore) => {
    const effects: Array<Effect.Effect<void>> = []
    return Effect.tap(
      Effect.locally(restore(transaction), following, effects),
      Effect.suspend(() =>
        Effect.forEach(effects, afterCommit, { concurrency: maxConcurrent, discard: true })
      )
    )
  })
