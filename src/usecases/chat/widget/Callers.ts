/** Resolves the agent that a caller of the hosted chat talks to, and what the caller may see. */
import * as Effect from "effect/Effect"
import {
  allows,
  atLeast,
  type Caller,
  type GrantingCredential,
  grantorOfKey,
  grantorOfUser,
  type ReadScope
} from "../../../domain/accounts/Access.ts"
import { type ValidationError, invalidField } from "../../../domain/Errors.ts"
import type { ExternalEndUserId } from "../../../domain/chat/ChatTurn.ts"
import type { AgentId } from "../../../domain/Ids.ts"
import { SourceScopes } from "../../knowledge/SourceScopes.ts"
import { requireVisitor } from "../Identity.ts"

/** `widget` for visitors of a page; `test` for team members who try the agent in the dashboard. */
export type HostedChannel = "widget" | "test"

/** The agent, the channel, and whether the caller sees a turn as operators do. */
export interface CallerAccess {
  readonly scope: ReadScope
  readonly channel: HostedChannel
  readonly full: boolean
  /** True when the caller may change the agent. */
  readonly mayChange: boolean
  /** The credential behind the caller's realtime token. */
  readonly by: GrantingCredential | null
  /** The external id that a token proves; null without a token. */
  readonly visitor: ExternalEndUserId | null
}

/** The person that a request is for. */
export const resolveVisitor = (
  { visitor }: Pick<CallerAccess, "visitor">,
  given: ExternalEndUserId | undefined
): Effect.Effect<ExternalEndUserId | undefined, ValidationError> =>
  Effect.as(requireVisitor(visitor ?? undefined, given), visitor ?? given)

export class Callers extends Effect.Service<Callers>()("usecases/chat/widget/Callers", {
  effect: Effect.gen(function* () {
    const scopes = yield* SourceScopes

    /** A key stands for its own agent, and `agentId` is ignored. A dashboard user must name an agent of the tenant. */
    const resolve = Effect.fn("Callers.resolve")(function* (caller: Caller, agentId: AgentId | undefined) {
      if (caller._tag === "Key") {
        const { permissions, ...scope } = caller.key
        const view: CallerAccess = {
          scope,
          channel: "widget",
          full: allows(permissions, "trace_read"),
          mayChange: false,
          by: grantorOfKey(caller.key),
          visitor: scope.visitor ?? null
        }
        return view
      }
      if (agentId === undefined) {
        return yield* invalidField(["agentId"], "Expected the id of an agent")
      }
      const scope: ReadScope = { ...(yield* scopes.ofAgent(caller.user, agentId)), sourceScope: null }
      const view: CallerAccess = {
        scope,
        channel: "test",
        full: true,
        mayChange: atLeast(caller.user.role, "admin"),
        by: grantorOfUser(caller.user),
        visitor: null
      }
      return view
    })

    return { resolve } as const
  })
}) {}
