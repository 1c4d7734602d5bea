/** Limits the disk space of unfinished uploads. Stored originals are not counted here; plans limit those. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Stream from "effect/Stream"
import { currentOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { ArtifactStoreError } from "../ArtifactStore.ts"
import { GiB } from "../../domain/Bytes.ts"

const tooManyUploads = () =>
  new ArtifactStoreError({ message: "Too many uploads are in progress. Try again later." })

const maxSpoolBytes = 2 * GiB

/** The limit of one store. One owner may use a quarter of it. */
export const makeSpoolLimit = () => {
  const limiter = new FairLimiter({
    name: "upload-spool-bytes",
    permits: maxSpoolBytes,
    maxPermitsPerOwner: Math.ceil(maxSpoolBytes / 4)
  })
  /** Counts `bytes` as they arrive, until the scope closes. Fails when there is no space for them. */
  return <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) =>
    Effect.gen(function* () {
      const owner = yield* FiberRef.get(currentOwner)
      const permit = yield* Effect.acquireRelease(
        Effect.sync(() => limiter.request(owner, { amount: 0 })),
        (held) => Effect.sync(() => held.release())
      )
      return Stream.mapEffect(bytes, (chunk) =>
        permit.resize(permit.amount + chunk.length) ? Effect.succeed(chunk) : Effect.fail(tooManyUploads())
      )
    })
}
