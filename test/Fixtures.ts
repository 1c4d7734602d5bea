/** Rows that many suites start from, written directly: a tenant on plan `self-hosted` with one agent and one key. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { AgentKey, ReadScope } from "../src/domain/accounts/Access.ts"
import { newId } from "../src/domain/Ids.ts"

export interface Limits {
  readonly turns?: number
  readonly sources?: number
  readonly ingestionJobs?: number
  readonly overage?: boolean
}

const unlimited = 1_000_000

/** A tenant with one agent. */
export const agent = (limits: Limits = {}) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const scope: ReadScope & Pick<AgentKey, "keyId"> = {
      tenantId: yield* newId.tenant,
      agentId: yield* newId.agent,
      // There is no row of this id. {@link key} makes one.
      keyId: yield* newId.key,
      sourceScope: null
    }
    yield* sql`insert into tenants (id, name) values (${scope.tenantId}, 'Test')`
    yield* sql`
      insert into subscriptions (
        tenant_id, plan, public_api, turns_limit, ingestion_jobs_limit, sources_limit, overage_enabled
      ) values (
        ${scope.tenantId}, 'self-hosted', true, ${limits.turns ?? unlimited}, ${limits.ingestionJobs ?? unlimited},
        ${limits.sources ?? unlimited}, ${limits.overage ?? false}
      )`
    yield* sql`insert into agents (id, tenant_id, name) values (${scope.agentId}, ${scope.tenantId}, 'Test agent')`
    return scope
  }).pipe(Effect.orDie)

/** The agent's key, which holds every permission. */
export const key = (scope: ReadScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const keyId = yield* newId.key
    yield* sql`
      insert into api_keys (id, tenant_id, agent_id, name, prefix, secret_hash, scope, permissions)
      values (${keyId}, ${scope.tenantId}, ${scope.agentId}, 'Test', 'spk_test', sha256(${keyId}::bytea), 'agent', '{*}')`
    const found: AgentKey = { ...scope, keyId, permissions: ["*"] }
    return found
  }).pipe(Effect.orDie)
