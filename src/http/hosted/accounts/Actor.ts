/** The signed-in user, or the token that acts for them, as the actor of audit entries. */
import * as Effect from "effect/Effect"
import type { SessionUser } from "../../../domain/accounts/Access.ts"
import type { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { CurrentUser } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"

/** Ids only: user or token, tenant, request. */
export const actor = Effect.zipWith(CurrentUser, RequestId, ({ userId, tenantId, token }, requestId) => ({
  tenantId,
  actor: token === undefined ? { type: "user" as const, id: userId } : { type: "token" as const, id: token },
  requestId
}))

/** Removes what `id` names for the signed-in user, and records it. */
export const removal = <Id extends string, A, E, R>(
  audit: AuditTrail,
  action: string,
  id: Id,
  remove: (user: SessionUser, id: Id) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    yield* audit.change(yield* actor, action, remove(yield* CurrentUser, id), () => id)
    return { id, deleted: true } as const
  })
