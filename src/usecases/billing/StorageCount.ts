/** The sweep that counts what the data of each tenant takes. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { maxUnsizedOriginals, StorageStore } from "../../store/billing/Storage.ts"

/** Maximum tenants of one sweep. */
const maxTenants = 5

export class StorageCount extends Effect.Service<StorageCount>()("usecases/billing/StorageCount", {
  effect: Effect.gen(function* () {
    const store = yield* StorageStore
    const artifacts = yield* ArtifactStore

    /**
     * Reads some originals whose size an earlier version did not store. True when there may be more. One that cannot be
     * read is left to a later count.
     */
    const measure = Effect.fn("StorageCount.measure")(function* ({ tenantId }: TenantScope) {
      const refs = yield* store.unsizedOriginals(tenantId)
      const read = yield* Effect.forEach(refs, (ref) =>
        artifacts.get(ref).pipe(
          Effect.flatMap((bytes) => store.setSize(ref, Option.getOrUndefined(bytes)?.length ?? 0)),
          Effect.as(true),
          Effect.catchTag("ArtifactStoreError", ({ message }) =>
            Effect.as(Effect.logWarning("An original cannot be measured", message), false)
          )
        )
      )
      return refs.length === maxUnsizedOriginals && read.includes(true)
    })

    /** Returns true when tenants may still wait. */
    const sweep = Effect.gen(function* () {
      for (let done = 0; done < maxTenants; done++) {
        const claimed = yield* store.claim
        // New tenants are looked for when no other is due.
        if (Option.isNone(claimed)) {
          if (yield* store.include) continue
          return false
        }
        if (yield* measure(claimed.value)) yield* store.postpone(claimed.value)
        else yield* store.advance(claimed.value)
      }
      return true
    }).pipe(Effect.withSpan("StorageCount.sweep"))

    return { sweep } as const
  })
}) {}
