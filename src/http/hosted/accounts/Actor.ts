/** The signed-in user, or the token that acts for them, as the actor of audit entries. */
import * as Effect from "effect/Effect"
import { CurrentUser } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"

/** Ids only: user or token, tenant, request. */
export const actor = Effect.zipWith(CurrentUser, RequestId, ({ userId, tenantId, token }, requestId) => ({
  tenantId,
  actor: token === undefined ? { type: "user" as const, id: userId } : { type: "token" as const, id: token },
  requestId
}))
