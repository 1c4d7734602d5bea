/** Resolves the agent of a dashboard request: sources belong to agents, sessions to tenants. */
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { orNoSuch } from "../../domain/Errors.ts"
import type { AgentId, SourceId } from "../../domain/Ids.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { SourceStore } from "../../store/knowledge/Sources.ts"

export class SourceScopes extends Effect.Service<SourceScopes>()("usecases/knowledge/SourceScopes", {
  effect: Effect.gen(function* () {
    const agents = yield* AgentStore
    const sources = yield* SourceStore

    const ofAgent = (tenant: TenantScope, id: AgentId) =>
      agents.findScope(tenant, id).pipe(orNoSuch("agent"), Effect.withSpan("SourceScopes.ofAgent"))

    const ofSource = Effect.fn("SourceScopes.ofSource")(function* (tenant: TenantScope, id: SourceId) {
      const agentId = yield* sources.agentOf(tenant, id).pipe(orNoSuch("source"))
      const scope: AgentScope = { tenantId: tenant.tenantId, agentId }
      return scope
    })

    return { ofAgent, ofSource } as const
  })
}) {}
