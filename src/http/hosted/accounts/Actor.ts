/** The signed-in user, or the token that acts for them, as the actor of audit entries. */
import * as Effect from "effect/Effect"
import type { SessionUser } from "../../../domain/accounts/Access.ts"
import { AuditTrail, type AuditContext } from "../../../usecases/accounts/AuditTrail.ts"
import { CurrentUser } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"

/** Ids only: user or token, tenant, request. */
export const actor = Effect.zipWith(CurrentUser, RequestId, ({ userId, tenantId, token }, requestId) => ({
  tenantId,
  actor: token === undefined ? { type: "user" as const, id: userId } : { type: "token" as const, id: token },
  requestId
}))

/** The target of an entry about what a change made. */
export const idOf = ({ id }: { readonly id: string }) => id

/** Makes `change` for the signed-in user, and records it. */
export const audited = <A, E, R>(
  action: string,
  change: (user: SessionUser, by: AuditContext) => Effect.Effect<A, E, R>,
  target: string | ((outcome: A, user: SessionUser) => string)
) =>
  Effect.gen(function* () {
    const audit = yield* AuditTrail
    const user = yield* CurrentUser
    const by = yield* actor
    return yield* audit.change(by, action, change(user, by), (outcome) =>
      typeof target === "string" ? target : target(outcome, user)
    )
  })

/** Removes what `id` names for the signed-in user, and records it. */
export const auditedRemoval = <Id extends string, A, E, R>(
  action: string,
  id: Id,
  remove: (user: SessionUser, id: Id) => Effect.Effect<A, E, R>
) =>
  Effect.as(
    audited(action, (user) => remove(user, id), id),
    { id, deleted: true } as const
  )

/** Records the reading of each of these turns for a replay. */
export const recordReplays = (runIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const audit = yield* AuditTrail
    const by = yield* actor
    yield* Effect.forEach(runIds, (id) => audit.record(by, "agent_run.replay", id), { discard: true })
  })
