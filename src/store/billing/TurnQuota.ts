/** Parts of a turn's statements that take a turn from the tenant's quota, and that return it. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { reservedBudgets, type BudgetedTurn } from "./TurnBudget.ts"

/**
 * `reserved`: a row when the tenant has a turn left, `condition` holds, and no budget of the turn is spent. The
 * period's turns are used first, then bought ones (`credited`). Of two concurrent statements for the last turn one
 * succeeds, because a row is checked again after its lock is obtained.
 */
export const reserveTurn = (sql: SqlClient.SqlClient, holder: BudgetedTurn, condition: Fragment) => sql`
  tenant as (
    select tenant_id, turns_limit, overage_enabled, period_start_of(tenant_id) as period_start, ${reservedBudgets(sql, holder)}
    from subscriptions where tenant_id = ${holder.tenantId} and ${condition}
  ),
  planned as (
    insert into tenant_usage as used (tenant_id, period_start, turns)
    select tenant_id, period_start, 1 from tenant where spent_budget is null and (turns_limit > 0 or overage_enabled)
    on conflict (tenant_id, period_start) do update set turns = used.turns + 1
    where used.turns - used.credited < (select turns_limit from tenant) or (select overage_enabled from tenant)
    returning period_start
  ),
  reserved as (
    select period_start, false as credited from planned
    union all select period_start, true from tenant
    where spent_budget is null and not exists (select 1 from planned) and take_credit(tenant_id, period_start)
  )`

/**
 * Returns every turn of `ended` to the quota that it was taken from: rows of tenant_id, period_start and credited. Rows
 * are locked in the order of {@link reserveTurn}, so that the two cannot deadlock.
 */
export const returnTurns = (sql: SqlClient.SqlClient, ended: Fragment) => sql`
  released as (
    update tenant_usage u set turns = u.turns - lost.total, credited = u.credited - lost.credited
    from (
      select tenant_id, period_start, count(*) as total, count(*) filter (where credited) as credited
      from ${ended} group by tenant_id, period_start
    ) lost
    where u.tenant_id = lost.tenant_id and u.period_start = lost.period_start
    returning u.tenant_id, lost.credited
  ),
  refunded as (
    update tenant_credits c set used = c.used - lost.credited
    from (select tenant_id, sum(credited) as credited from released where credited > 0 group by tenant_id) lost
    where c.tenant_id = lost.tenant_id
  )`
