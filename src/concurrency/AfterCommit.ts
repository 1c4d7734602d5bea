/** Runs effects after the commit of a transaction, such as requests that must not be sent if it fails. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import { inOwnFiber } from "./InOwnFiber.ts"

/** Maximum number of effects that run at the same time. */
const maxConcurrent = 8

/** The effects that wait for the commit of this fiber's transaction; null outside of {@link withCommit}. */
const pendingEffects: FiberRef.FiberRef<Array<Effect.Effect<void>> | null> = globalValue(
  "spoke/concurrency/AfterCommit",
  () => FiberRef.unsafeMake<Array<Effect.Effect<void>> | null>(null)
)

/** Runs the effect after the commit of the enclosing {@link withCommit}, or now if there is none. */
export const afterCommit = (effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(FiberRef.get(pendingEffects), (effects) =>
    effects === null ? inOwnFiber(effect) : Effect.sync(() => void effects.push(effect))
  )

/**
 * Runs `transaction`, and then the effects that were given to {@link afterCommit} in it. Inside of another `withCommit`
 * they wait for the outer commit. If the transaction fails, they are dropped.
 */
export const withCommit = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  // After the commit, an interruption of the caller must not drop the effects.
  Effect.uninterruptibleMask((restore) => {
    const effects: Array<Effect.Effect<void>> = []
    return Effect.tap(
      Effect.locally(restore(transaction), pendingEffects, effects),
      Effect.suspend(() =>
        Effect.forEach(effects, afterCommit, { concurrency: maxConcurrent, discard: true })
      )
    )
  })
