/**
 * On whose behalf a fiber works: the tenant's, or the client's network where no tenant is known yet. Limits that everybody
 * shares are shared by it. Fibers that are forked work for the same owner.
 */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import type { FairLimiter } from "./FairLimiter.ts"

/** The service itself: sweeps, start, shutdown. */
export const system = "system"

export const currentOwner: FiberRef.FiberRef<string> = globalValue("spoke/domain/CurrentOwner", () =>
  FiberRef.unsafeMake(system)
)

/** From here on this fiber works for `owner`: for a request, whose fiber is its own. */
export const workFor = (owner: string): Effect.Effect<void> => FiberRef.set(currentOwner, owner)

/** Runs the effect for `owner`. */
export const withOwner = (owner: string) => Effect.locally(currentOwner, owner)

/**
 * {@link FairLimiter.withPermit} for the owner that the fiber works for; fails with `onFull` where there is neither a permit
 * nor a place to wait.
 */
export const withSharedPermit =
  <E2>(limiter: FairLimiter, onFull: () => E2) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    Effect.flatMap(FiberRef.get(currentOwner), (owner) =>
      Effect.flatten(Effect.mapError(limiter.withPermit(owner)(Effect.exit(effect)), onFull))
    )
