/**
 * Remaining entitlements of a tenant. Both reservations hold a row lock until the caller's transaction ends, so that
 * two requests cannot both use the last place.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import * as Rows from "../Rows.ts"

export class EntitlementStore extends Effect.Service<EntitlementStore>()("store/billing/Entitlements", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** True when the tenant may have one more source. Must be called in the transaction that adds it. */
    const reserveSource = Effect.fn("EntitlementStore.reserveSource")(function* (scope: AgentScope) {
      // A separate statement for the lock: the count must see what its last holder committed.
      const [subscription] = yield* sql<{ readonly limit: number }>`
        select sources_limit::float8 as limit from subscriptions where tenant_id = ${scope.tenantId} for update`
      const [sources] = yield* sql<{ readonly count: number }>`
        select count(*)::int as count from sources where tenant_id = ${scope.tenantId}`
      return (sources?.count ?? 0) < (subscription?.limit ?? 0)
    }, Effect.orDie)

    /** True when the quota of the period has a job left. The job is then counted for tenant and agent. */
    const reserveIngestionJob = (scope: AgentScope) =>
      sql`
        with tenant as (
          select tenant_id, ingestion_jobs_limit, period_start_of(tenant_id) as period_start
          from subscriptions where tenant_id = ${scope.tenantId}
        ),
        reserved as (
          insert into tenant_usage as used (tenant_id, period_start, ingestion_jobs)
          select tenant_id, period_start, 1 from tenant where ingestion_jobs_limit > 0
          on conflict (tenant_id, period_start) do update set ingestion_jobs = used.ingestion_jobs + 1
          where used.ingestion_jobs < (select ingestion_jobs_limit from tenant)
          returning period_start
        )
        insert into agent_usage as used (tenant_id, agent_id, period_start, ingestion_jobs)
        select ${scope.tenantId}, ${scope.agentId}, period_start, 1 from reserved
        on conflict (tenant_id, agent_id, period_start) do update set ingestion_jobs = used.ingestion_jobs + 1
        returning used.agent_id`.pipe(Rows.any, Effect.withSpan("EntitlementStore.reserveIngestionJob"))

    return { reserveSource, reserveIngestionJob } as const
  })
}) {}
