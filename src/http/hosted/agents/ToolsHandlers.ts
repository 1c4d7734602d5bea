import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { atLeast } from "../../../domain/accounts/Access.ts"
import type { ToolSignInProblem } from "../../../domain/agents/ToolConnection.ts"
import type { AgentId } from "../../../domain/Ids.ts"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Accounts } from "../../../usecases/accounts/Accounts.ts"
import { ToolConnections, ToolSignInRefused } from "../../../usecases/agents/ToolConnections.ts"
import { Tools } from "../../../usecases/agents/Tools.ts"
import { ToolTrials } from "../../../usecases/chat/tools/ToolTrials.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { RequestId } from "../../server/RequestId.ts"
import { actor, audited, idOf, auditedRemoval } from "../accounts/Actor.ts"
import { sessionToken } from "../accounts/SessionCookie.ts"
import { ToolAddresses } from "./ToolAddresses.ts"

const group = (handlers: GroupHandlers<"tools">) =>
  Effect.gen(function* () {
    const tools = yield* Tools
    const connections = yield* ToolConnections
    const addresses = yield* ToolAddresses
    const trials = yield* ToolTrials
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path, urlParams }) =>
        listPage(
          "tools",
          { route: "/api/agents/:id/tools", filter: { id: path.id } },
          urlParams,
          (user, page) => tools.list(user, path.id, page)
        )
      )
      .handle("create", ({ path, payload }) =>
        audited("tool.create", (user) => tools.create(user, path.id, payload), idOf).pipe(
          Effect.bindTo("tool")
        )
      )
      .handle("patch", ({ headers, path, payload }) =>
        audited(
          "tool.update",
          (user) => tools.patch(user, path.id, payload, expectedVersion(headers)),
          idOf
        ).pipe(Effect.bindTo("tool"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("tool.delete", id, tools.remove))
      .handle("connect", ({ path: { id } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          // A program has no session that a sign-in could end in.
          const session = user.token === undefined ? Option.getOrNull(yield* sessionToken) : null
          const url = yield* connections.begin(user, id, session, addresses)
          if (url === null) yield* audit.record(yield* actor, "tool.connect", id)
          return { url }
        })
      )
      .handle("disconnect", ({ path: { id } }) =>
        auditedRemoval("tool.disconnect", id, connections.disconnect)
      )
      .handle("trial", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          // Recorded first: the call may have an effect elsewhere.
          if (payload.arguments !== undefined) yield* audit.record(yield* actor, "tool.trial", id)
          return yield* trials.run(user, id, payload)
        })
      )
  })

export const ToolsHandlers = HttpApiBuilder.group(Api, "tools", group)
export const ManagedToolsHandlers = HttpApiBuilder.group(Api, "managedTools", group)

/** Redirects to the dashboard, which shows the problem if there is one. There is no other redirect target. */
const toDashboard = (agentId: AgentId | null, problem: ToolSignInProblem | null) => {
  const page = agentId === null ? "/app/agents" : `/app/agents/${encodeURIComponent(agentId)}/tools`
  return HttpServerResponse.redirect(`${page}?connection=${problem ?? "made"}`, { status: 302 })
}

const signedOut = new ToolSignInRefused({ problem: "signed-out", agentId: null })

/** Returns of browsers from authorization servers. */
export const ToolSignInsHandlers = HttpApiBuilder.group(Api, "toolSignIns", (handlers) =>
  Effect.gen(function* () {
    const connections = yield* ToolConnections
    const accounts = yield* Accounts
    const { redirectUri } = yield* ToolAddresses
    const audit = yield* AuditTrail
    return handlers.handle("callback", ({ urlParams }) =>
      Effect.gen(function* () {
        const session = yield* sessionToken
        if (Option.isNone(session)) return yield* signedOut
        const { role, tenantId, userId } = yield* Effect.catchTag(
          accounts.authenticate(session.value),
          "UNAUTHORIZED",
          () => Effect.fail(signedOut)
        )
        if (!atLeast(role, "admin")) return yield* signedOut
        const { agentId, toolId } = yield* connections.finish(
          { tenantId },
          session.value,
          urlParams,
          redirectUri
        )
        const by = { tenantId, actor: { type: "user" as const, id: userId }, requestId: yield* RequestId }
        yield* audit.record(by, "tool.connect", toolId)
        return toDashboard(agentId, null)
      }).pipe(
        Effect.catchTag("ToolSignInRefused", ({ agentId, problem }) =>
          Effect.succeed(toDashboard(agentId, problem))
        )
      )
    )
  })
)
