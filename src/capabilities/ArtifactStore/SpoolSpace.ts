/** Bytes on the disk of uploads that are still coming. What is kept is no longer counted, and bounded by what a plan allows. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Stream from "effect/Stream"
import { currentOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { ArtifactStoreError } from "../ArtifactStore.ts"

const GiB = 1_073_741_824

const full = () =>
  new ArtifactStoreError({ message: "The uploads that are coming in take all the room they may." })

/** For one store; an owner may have a quarter. */
export const makeSpoolSpace = (maxBytes = 2 * GiB) => {
  const limiter = new FairLimiter({
    name: "upload-spool-bytes",
    permits: maxBytes,
    maxPermitsPerOwner: Math.ceil(maxBytes / 4)
  })
  /** `bytes`, counted as they come until the scope closes; fails when there is no room for them. */
  return <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) =>
    Effect.gen(function* () {
      const owner = yield* FiberRef.get(currentOwner)
      const permit = yield* Effect.acquireRelease(
        Effect.sync(() => limiter.request(owner, { amount: 0 })),
        (held) => Effect.sync(() => held.release())
      )
      return Stream.mapEffect(bytes, (chunk) =>
        permit.resize(permit.amount + chunk.length) ? Effect.succeed(chunk) : Effect.fail(full())
      )
    })
}
