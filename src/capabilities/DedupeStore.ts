/** Keys that can be claimed once within a time to live, by the first caller. */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The store could not be reached; it is unknown whether the key is claimed. */
export class DedupeStoreError extends Schema.TaggedError<DedupeStoreError>()("DedupeStoreError", {
  message: Schema.String
}) {}

export class DedupeStore extends Context.Tag("capabilities/DedupeStore")<
  DedupeStore,
  {
    /** True for the first claim of `key` within `ttl`, false for every repeat. A repeat does not extend the time. */
    readonly claim: (key: string, ttl: Duration.DurationInput) => Effect.Effect<boolean, DedupeStoreError>
    /** Releases the key, so that the next claim succeeds. For work that was not done. */
    readonly release: (key: string) => Effect.Effect<void, DedupeStoreError>
  }
>() {}
