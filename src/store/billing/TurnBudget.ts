/**
 * Parts of a turn's statements that reserve an amount of the tenant's budgets, and that add the turn's cost to them.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { type Bill, sumOf } from "../../domain/billing/Cost.ts"
import type { KeyId, RunId, TenantId } from "../../domain/Ids.ts"
import type { Report } from "../events/ReportedEvents.ts"

/** The turn for which an amount is reserved. */
export interface BudgetedTurn extends AgentScope {
  readonly keyId?: KeyId
  readonly runId: RunId
  readonly instanceId: string
  readonly timeout: Duration.DurationInput
}

/**
 * Columns of the tenant's row of `subscriptions`: whether it has budgets, and the exhausted one, if any, as a
 * `ExhaustedBudget`.
 */
export const reservedBudgets = (sql: SqlClient.SqlClient, holder: BudgetedTurn) => sql`
  has_budgets, case when has_budgets then hold_budgets(
    tenant_id, ${holder.agentId}, ${holder.keyId ?? null}::text, ${holder.runId}, ${holder.instanceId},
    now() + make_interval(secs => ${Duration.toSeconds(holder.timeout)})
  ) end as spent_budget`

/**
 * The CTE `budgeted`: removes the reservation of the turn in the CTE `settled`, and adds its cost to the spent amounts.
 */
export const settledBudgets = (sql: SqlClient.SqlClient, bills: ReadonlyArray<Bill>) => sql`
  budgeted as (
    select settled.tenant_id, passed.*
    from settled, settle_budgets(settled.tenant_id, settled.id, ${sumOf(bills).nanoUsd ?? 0}::bigint) passed
  )`

/** A column for the statement that has {@link settledBudgets}. PostgreSQL does not run a CTE that nothing reads. */
export const readBudgets = (sql: SqlClient.SqlClient) => sql`(select count(*) from budgeted)`

/** Removes the reservation of a turn that has not begun. */
export const releaseReservation = (sql: SqlClient.SqlClient, tenantId: TenantId, runId: RunId) =>
  sql`select * from settle_budgets(${tenantId}, ${runId}, 0)`

/**
 * Reports that a budget is nearly or fully spent, from the rows of {@link settledBudgets}. Once for each threshold,
 * period and limit.
 */
export const thresholdEvents = (sql: SqlClient.SqlClient): Report => ({
  type: "budget.near",
  key: sql`near.budget_id || ':' || near.percent || ':' || near.limit_nano || ':' || extract(epoch from near.period_start)`,
  tenantId: sql`near.tenant_id`,
  agentId: sql`near.agent_id`,
  conversationId: sql`null`,
  ids: sql`jsonb_build_object('budgetId', near.budget_id, 'keyId', near.key_id, 'period', near.period, 'percent', near.percent,
    'limitNanoUsd', near.limit_nano, 'spentNanoUsd', near.spent_nano)`,
  from: sql`budgeted near`,
  place: sql`100 + near.percent`
})
