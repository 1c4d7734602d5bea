/**
 * The owner that a fiber works for: a tenant, or the client's network while the tenant is not known. Shared limits
 * divide their permits between owners. Forked fibers have the same owner.
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

/** Sets the owner of this fiber, for requests, each of which has a fiber of its own. */
export const workFor = (owner: string): Effect.Effect<void> => FiberRef.set(currentOwner, owner)

/** Runs the effect for `owner`. */
export const withOwner = (owner: string) => Effect.locally(currentOwner, owner)

/**
 * {@link FairLimiter.withPermit} for the owner of the fiber. Fails with `onFull` if there is neither a permit nor a
 * place in the queue.
 */
export const withSharedPermit =
  <E2>(limiter: FairLimiter, onFull: () => E2) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    Effect.flatMap(FiberRef.get(currentOwner), (owner) =>
      Effect.flatten(Effect.mapError(limiter.withPermit(owner)(Effect.exit(effect)), onFull))
    )
