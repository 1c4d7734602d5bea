/** The audit trail: what people and the operator change is written down before the change is shown. */
import * as Effect from "effect/Effect"
import { type Actor, AuditLog } from "../../capabilities/AuditLog.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import type { TenantId } from "../../domain/Ids.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"

/** For whom a change is recorded. */
export interface By {
  readonly tenantId: TenantId
  readonly actor: Actor
  readonly requestId: string
}

export class AuditTrail extends Effect.Service<AuditTrail>()("usecases/accounts/AuditTrail", {
  effect: Effect.gen(function* () {
    const log = yield* AuditLog

    /** Newest first. */
    const list = (scope: TenantScope, page: PageRequest) => log.list(scope.tenantId, page)

    /** SERVICE_UNAVAILABLE when it could not be written down. */
    const record = Effect.fn("AuditTrail.record")(function* (by: By, action: string, target: string) {
      yield* log.record({ ...by, action, target }).pipe(
        Effect.tapErrorCause((cause) => Effect.logError("A change could not be audited", { action }, cause)),
        Effect.mapError(
          () =>
            new ServiceUnavailable({
              message: "What was asked for could not be recorded. Look before you retry."
            })
        )
      )
    })

    /**
     * `change`, then its entry, then its outcome is shown. A client that leaves in between never leaves a change without its entry.
     * A change that fails leaves none.
     */
    const change = <A, E, R>(
      by: By,
      action: string,
      change: Effect.Effect<A, E, R>,
      target: (outcome: A) => string
    ): Effect.Effect<A, E | ServiceUnavailable, R> =>
      Effect.uninterruptible(Effect.tap(change, (outcome) => record(by, action, target(outcome))))

    return { list, record, change } as const
  })
}) {}
