/** The signed-in user as the audit trail names them. */
import * as Effect from "effect/Effect"
import { CurrentUser } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"

/** Ids alone: who, of which tenant, in which request. */
export const actor = Effect.zipWith(CurrentUser, RequestId, ({ userId, tenantId }, requestId) => ({
  tenantId,
  actor: { type: "user" as const, id: userId },
  requestId
}))
