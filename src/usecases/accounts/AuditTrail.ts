/** The audit trail. Changes by people and the operator are recorded before their result is returned. */
import * as Effect from "effect/Effect"
import { type Actor, AuditLog } from "../../capabilities/AuditLog.ts"
import { inOwnFiber } from "../../concurrency/InOwnFiber.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import type { TenantId } from "../../domain/Ids.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"

/** Who changes something, in which request, and for which tenant. */
export interface AuditContext {
  readonly tenantId: TenantId
  readonly actor: Actor
  readonly requestId: string
}

export class AuditTrail extends Effect.Service<AuditTrail>()("usecases/accounts/AuditTrail", {
  effect: Effect.gen(function* () {
    const log = yield* AuditLog

    /** Newest first. */
    const list = (scope: TenantScope, page: PageRequest) => log.list(scope.tenantId, page)

    /** SERVICE_UNAVAILABLE when the entry could not be written. */
    const record = Effect.fn("AuditTrail.record")(function* (
      by: AuditContext,
      action: string,
      target: string
    ) {
      yield* log.record({ ...by, action, target }).pipe(
        Effect.tapErrorCause((cause) => Effect.logError("A change could not be audited", { action }, cause)),
        Effect.mapError(
          () =>
            new ServiceUnavailable({
              message: "The change could not be recorded in the audit log. Check its result before you retry."
            })
        )
      )
    })

    /**
     * Runs `change`, records it, and then returns its result. A disconnected client does not prevent the entry. A
     * failed change is not recorded. `target` is what was changed, if need be by the outcome.
     */
    const change = <A, E, R>(
      by: AuditContext,
      action: string,
      change: Effect.Effect<A, E, R>,
      target: string | ((outcome: A) => string)
    ): Effect.Effect<A, E | ServiceUnavailable, R> =>
      Effect.uninterruptible(
        Effect.tap(inOwnFiber(change), (outcome) =>
          record(by, action, typeof target === "string" ? target : target(outcome))
        )
      )

    return { list, record, change } as const
  })
}) {}
