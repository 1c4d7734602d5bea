/** Retention periods of tenants, and the sweep that removes older data. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { RetentionStore } from "../../store/accounts/Retention.ts"

/** Batches of one sweep. Tenants take turns: each has one batch before the next tenant. */
const batches = 50

export class RetentionLimits extends Effect.Service<RetentionLimits>()("usecases/accounts/Retention", {
  effect: Effect.gen(function* () {
    const store = yield* RetentionStore

    /** Runs one batch. False when no tenant was due. */
    const one = Effect.gen(function* () {
      const claimed = yield* store.claim
      if (Option.isNone(claimed)) return false
      yield* store.release(claimed.value, yield* store.remove(claimed.value))
      return true
    })

    /** Returns true when tenants may still wait. */
    const sweep = Effect.gen(function* () {
      for (let done = 0; done < batches; done++) if (!(yield* one)) return false
      return true
    }).pipe(Effect.withSpan("RetentionLimits.sweep"))

    return { find: store.find, patch: store.patch, sweep } as const
  })
}) {}
