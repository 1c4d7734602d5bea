/** Content-addressed originals: uploaded and fetched files, by the SHA-256 of their bytes. */
import { createHash } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ArtifactRef } from "../domain/knowledge/Source.ts"

/** `message` is for the operator. It says what failed, without a path or content. */
export class ArtifactStoreError extends Schema.TaggedError<ArtifactStoreError>()("ArtifactStoreError", {
  message: Schema.String
}) {}

/** Bytes that were received completely and are not stored yet. */
export interface Staged {
  readonly ref: ArtifactRef
  /** Bytes. */
  readonly size: number
  /** Stores the bytes, durably when it returns. Staged bytes that were not stored are removed with the scope. */
  readonly store: Effect.Effect<void, ArtifactStoreError>
}

export class ArtifactStore extends Context.Tag("capabilities/ArtifactStore")<
  ArtifactStore,
  {
    /** Stores bytes, durably when it returns. Storing the same bytes again changes nothing. */
    readonly put: (bytes: Uint8Array) => Effect.Effect<ArtifactRef, ArtifactStoreError>
    /** Receives a stream of bytes with little memory. Nothing is stored until `store`. */
    readonly stage: <E, R>(
      bytes: Stream.Stream<Uint8Array, E, R>
    ) => Effect.Effect<Staged, E | ArtifactStoreError, R | Scope.Scope>
    /** The stored bytes, or none. Fails when the stored content is damaged. */
    readonly get: (ref: ArtifactRef) => Effect.Effect<Option.Option<Uint8Array>, ArtifactStoreError>
    /** Succeeds also if the artifact does not exist. */
    readonly remove: (ref: ArtifactRef) => Effect.Effect<void, ArtifactStoreError>
  }
>() {}

/** The address of the bytes. */
export const refOf = (bytes: Uint8Array): ArtifactRef =>
  ArtifactRef.make(`sha256:${createHash("sha256").update(bytes).digest("hex")}`)

/** Stores everything in the memory of this process. */
export const layerMemory: Layer.Layer<ArtifactStore> = Layer.sync(ArtifactStore, () => {
  const stored = new Map<ArtifactRef, Uint8Array>()
  const store = (ref: ArtifactRef, bytes: Uint8Array) => Effect.sync(() => void stored.set(ref, bytes))
  return {
    stage: (bytes) =>
      Effect.map(Stream.runCollect(bytes), (chunks) => {
        const whole = Uint8Array.from(Buffer.concat(Array.from(chunks)))
        const ref = refOf(whole)
        return { ref, size: whole.length, store: store(ref, whole) }
      }),
    put: (bytes) =>
      Effect.sync(() => {
        const ref = refOf(bytes)
        stored.set(ref, Uint8Array.from(bytes))
        return ref
      }),
    get: (ref) =>
      Effect.sync(() => Option.map(Option.fromNullable(stored.get(ref)), (bytes) => Uint8Array.from(bytes))),
    remove: (ref) => Effect.sync(() => void stored.delete(ref))
  }
})
