/** The signed-in user, or the token that acts for them, as the audit trail names them. */
import * as Effect from "effect/Effect"
import { CurrentUser } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"

/** Ids alone: who, of which tenant, in which request. */
export const actor = Effect.zipWith(CurrentUser, RequestId, ({ userId, tenantId, token }, requestId) => ({
  tenantId,
  actor: token === undefined ? { type: "user" as const, id: userId } : { type: "token" as const, id: token },
  requestId
}))
