/** Content-addressed originals: uploaded and fetched files, by the SHA-256 of their bytes. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ArtifactRef } from "../domain/Source.ts"

export class ArtifactStoreError extends Schema.TaggedError<ArtifactStoreError>()("ArtifactStoreError", {
  message: Schema.String
}) {}

export class ArtifactStore extends Context.Tag("capabilities/ArtifactStore")<
  ArtifactStore,
  {
    /** Durable when it returns; storing the same bytes again changes nothing. */
    readonly put: (bytes: Uint8Array) => Effect.Effect<ArtifactRef, ArtifactStoreError>
    readonly get: (ref: ArtifactRef) => Effect.Effect<Option.Option<Uint8Array>, ArtifactStoreError>
    /** Removing what is not there is a success. */
    readonly remove: (ref: ArtifactRef) => Effect.Effect<void, ArtifactStoreError>
  }
>() {}
