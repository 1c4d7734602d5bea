/** For which agent a caller of the hosted chat speaks, and what it may see. */
import * as Effect from "effect/Effect"
import {
  allows,
  atLeast,
  type Caller,
  type Grantor,
  grantorOfKey,
  grantorOfUser,
  type ReadScope
} from "../../../domain/accounts/Access.ts"
import { ValidationError } from "../../../domain/Errors.ts"
import type { AgentId } from "../../../domain/Ids.ts"
import { SourceScopes } from "../../knowledge/SourceScopes.ts"

/** What a page's visitors say comes over the widget; what the team says in the dashboard is to try the agent. */
export type HostedChannel = "widget" | "test"

/** The agent, where what is said comes in, and whether the caller sees a turn as operators do. */
export interface Standing {
  readonly scope: ReadScope
  readonly channel: HostedChannel
  readonly full: boolean
  /** Whether the caller may change the agent. */
  readonly mayChange: boolean
  /** What a realtime token of the caller's stands on. */
  readonly by: Grantor | null
}

export class Callers extends Effect.Service<Callers>()("usecases/chat/widget/Callers", {
  effect: Effect.gen(function* () {
    const scopes = yield* SourceScopes

    /** A key stands for its own agent, and `agentId` is ignored; a dashboard user must name one of the tenant's. */
    const standing = Effect.fn("Callers.standing")(function* (caller: Caller, agentId: AgentId | undefined) {
      if (caller._tag === "Key") {
        const { agentId: own, permissions, sourceScope, tenantId } = caller.key
        const scope: ReadScope = { tenantId, agentId: own, sourceScope }
        const view: Standing = {
          scope,
          channel: "widget",
          full: allows(permissions, "trace_read"),
          mayChange: false,
          by: grantorOfKey(caller.key)
        }
        return view
      }
      if (agentId === undefined) {
        return yield* new ValidationError({
          message: "The request does not have the expected form.",
          details: { issues: [{ path: ["agentId"], message: "Expected the id of an agent" }] }
        })
      }
      const scope: ReadScope = { ...(yield* scopes.ofAgent(caller.user, agentId)), sourceScope: null }
      const view: Standing = {
        scope,
        channel: "test",
        full: true,
        mayChange: atLeast(caller.user.role, "admin"),
        by: grantorOfUser(caller.user)
      }
      return view
    })

    return { standing } as const
  })
}) {}
