import * as Effect from "effect/Effect"
import { DedupeStoreError } from "../DedupeStore.ts"

/** Converts any failure to a {@link DedupeStoreError}. Its cause is only logged. */
export const orUnreachable = <A>(effect: Effect.Effect<A, unknown>) =>
  Effect.catchAll(effect, (cause) =>
    Effect.zipRight(
      Effect.logError("Dedupe keys cannot be reached", cause),
      new DedupeStoreError({ message: "Dedupe keys cannot be reached." })
    )
  )
