/** Resolves the agent of a dashboard request: sources belong to agents, sessions to tenants. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { NotFound } from "../../domain/Errors.ts"
import type { AgentId, SourceId } from "../../domain/Ids.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { SourceStore } from "../../store/knowledge/Sources.ts"

export class SourceScopes extends Effect.Service<SourceScopes>()("usecases/knowledge/SourceScopes", {
  effect: Effect.gen(function* () {
    const agents = yield* AgentStore
    const sources = yield* SourceStore

    const ofAgent = Effect.fn("SourceScopes.ofAgent")(function* (tenant: TenantScope, agentId: AgentId) {
      const found = yield* agents.find(tenant, agentId)
      if (Option.isNone(found)) return yield* new NotFound({ message: "There is no such agent." })
      const scope: AgentScope = { tenantId: tenant.tenantId, agentId }
      return scope
    })

    const ofSource = Effect.fn("SourceScopes.ofSource")(function* (tenant: TenantScope, id: SourceId) {
      const agentId = yield* sources.agentOf(tenant, id)
      if (Option.isNone(agentId)) return yield* new NotFound({ message: "There is no such source." })
      const scope: AgentScope = { tenantId: tenant.tenantId, agentId: agentId.value }
      return scope
    })

    return { ofAgent, ofSource } as const
  })
}) {}
