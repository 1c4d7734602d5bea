import * as Effect from "effect/Effect"
import type { TenantId } from "../../domain/Ids.ts"
import { RequestId } from "../server/RequestId.ts"

/** The operator as the actor of audit entries of a tenant. */
export const operatorActor = (tenantId: TenantId) =>
  Effect.map(RequestId, (requestId) => ({
    tenantId,
    actor: { type: "operator" as const, id: "operator" },
    requestId
  }))
