/**
 * Originals of uploads: stores them for a source, and removes them once no source refers to them. A removal is a
 * durable job of queue `artifact-cleanup`. When all its attempts have failed, the sweep tries again at each interval.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import {
  ArtifactStore,
  type ArtifactStoreError,
  refOf,
  type Staged
} from "../../capabilities/ArtifactStore.ts"
import { JobFailure, JobQueue, type QueueJob } from "../../capabilities/JobQueue.ts"
import { type CodedError, ServiceUnavailable } from "../../domain/Errors.ts"
import { typeId } from "../../domain/Ids.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { ArtifactRows, removalLease } from "../../store/knowledge/ArtifactRows.ts"

const Payload = Schema.Struct({ artifact: ArtifactRef })

/** Well below the lease time for which only one process may remove the artifact. */
const removalTimeout = Duration.seconds(30)
/** Longest time that storing bytes waits while the same bytes are being removed. */
const maxRemovalWait = Duration.seconds(10)
/** Maximum originals that one sweep removes. */
const sweepLimit = 1_000

/** Stored bytes with a claim. They stay until the claim is settled or abandoned. */
export interface ClaimedArtifact {
  readonly ref: ArtifactRef
  readonly claim: string
}

/** The error while the artifact store does not answer. */
const cannotStore = () =>
  new ServiceUnavailable({ message: "The file cannot be stored now. Try again later." })

const storeTimedOut = () => new JobFailure({ message: "The artifact store did not answer.", fatal: false })
const beingRemoved = () =>
  new JobFailure({
    message: "The artifact is being removed already.",
    fatal: false,
    retryAfter: removalLease
  })

export class Artifacts extends Effect.Service<Artifacts>()("usecases/knowledge/Artifacts", {
  effect: Effect.gen(function* () {
    const rows = yield* ArtifactRows
    const store = yield* ArtifactStore
    const queue = yield* JobQueue

    /** Queues the removal in the caller's transaction. An original that another source refers to is kept. */
    const release = (artifact: ArtifactRef) =>
      queue.enqueue("artifact-cleanup", { artifact }, { serialKey: artifact })

    /** {@link release} for many. */
    const releaseAll = (refs: ReadonlyArray<ArtifactRef>) =>
      queue.enqueueAll(
        "artifact-cleanup",
        refs.map((artifact) => ({ payload: { artifact }, options: { serialKey: artifact } }))
      )

    /** Gives up bytes whose source was not created. Errors are logged: the sweep then removes the bytes. */
    const abandon = ({ claim, ref }: ClaimedArtifact) =>
      Effect.zipRight(rows.releaseClaim(claim), release(ref)).pipe(
        Effect.catchAllCause((cause) =>
          Effect.logWarning("An original that no source needs is left to the sweep", cause)
        )
      )

    const claim = Effect.fn("Artifacts.claim")(function* (id: string, ref: ArtifactRef, size: number) {
      yield* rows
        .claim(id, ref, size)
        .pipe(
          Effect.repeat({ until: (claimed) => claimed, schedule: Schedule.spaced("50 millis") }),
          Effect.timeoutFail({ duration: maxRemovalWait, onTimeout: cannotStore })
        )
    })

    const storeWithClaim = Effect.fn("Artifacts.storeWithClaim")(function* (
      ref: ArtifactRef,
      size: number,
      write: Effect.Effect<unknown, ArtifactStoreError>
    ) {
      const kept: ClaimedArtifact = { ref, claim: typeId("clm", yield* Clock.currentTimeMillis) }
      yield* claim(kept.claim, kept.ref, size)
      yield* write.pipe(
        Effect.tapError((cause) => Effect.logError("An original could not be stored", cause)),
        Effect.mapError(cannotStore),
        Effect.onError(() => abandon(kept))
      )
      return kept
    })

    /**
     * Stores the bytes with a claim, so that they are not removed before they are settled or abandoned. Must not run in
     * a transaction.
     */
    const keep = (bytes: Uint8Array) => storeWithClaim(refOf(bytes), bytes.length, store.put(bytes))

    /** Receives an upload as a stream. It is removed with the scope unless it is kept. */
    const stage = <E extends CodedError>(
      bytes: Stream.Stream<Uint8Array, E>
    ): Effect.Effect<Staged, E | ServiceUnavailable, Scope.Scope> =>
      store.stage(bytes).pipe(
        Effect.catchTag("ArtifactStoreError", ({ message }) =>
          Effect.zipRight(Effect.logError("A file could not be taken in", message), cannotStore())
        ),
        Effect.withSpan("Artifacts.stage")
      )

    /** {@link keep} for bytes from {@link stage}. */
    const keepStaged = (staged: Staged) => storeWithClaim(staged.ref, staged.size, staged.store)

    /** Ends the claim in the transaction that adds the source. From its commit the source refers to the bytes. */
    const settle = Effect.fn("Artifacts.settle")(function* ({ claim: id, ref }: ClaimedArtifact) {
      if (!(yield* rows.settle(id, ref))) return yield* cannotStore()
    })

    /** Removes the bytes unless they are referenced. */
    const remove = Effect.fn("Artifacts.remove")(function* (ref: ArtifactRef) {
      const state = yield* rows.beginRemoval(ref)
      if (state === "needed") return
      if (state === "busy") return yield* beingRemoved()
      // A removal that timed out may still happen: until its lease is over no caller stores the same bytes.
      yield* store.remove(ref).pipe(
        Effect.timeoutFail({ duration: removalTimeout, onTimeout: storeTimedOut }),
        Effect.catchTag("ArtifactStoreError", ({ message }) =>
          Effect.zipRight(rows.endRemoval(ref, { removed: false }), new JobFailure({ message, fatal: false }))
        )
      )
      yield* rows.endRemoval(ref, { removed: true })
    })

    /** Handler of queue `artifact-cleanup`. */
    const process = Effect.fn("Artifacts.process")(function* (job: QueueJob) {
      const { artifact } = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      yield* remove(artifact)
    })

    /**
     * Removes every unreferenced original, including those whose jobs were given up. One failure does not stop the
     * rest.
     */
    const sweep = Effect.gen(function* () {
      for (const ref of yield* rows.orphans(sweepLimit)) {
        yield* remove(ref).pipe(
          Effect.catchAll(({ message }) => Effect.logWarning("An original could not be removed", message))
        )
      }
    }).pipe(Effect.withSpan("Artifacts.sweep"))

    return { keep, stage, keepStaged, settle, abandon, release, releaseAll, process, sweep } as const
  })
}) {}
