/**
 * Budgets of a tenant, and the amounts spent in their current periods. Turns reserve and settle them in
 * billing/TurnBudget.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Budget, type BudgetId, type CreateBudget } from "../../domain/billing/Budget.ts"
import type { Page } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of budgets of one tenant. */
export const maxBudgets = 200

const Row = Schema.Struct({
  ...Budget.fields,
  limitNanoUsd: Schema.Number,
  spentNanoUsd: Schema.Number,
  reservedNanoUsd: Schema.Number,
  resetsAt: Schema.DateTimeUtcFromDate,
  createdAt: Schema.DateTimeUtcFromDate
})

/** Maximum number of rows that one cleanup statement removes. */
const pruneBatch = 1_000

export class BudgetStore extends Effect.Service<BudgetStore>()("store/billing/Budgets", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      b.id, b.agent_id as "agentId", b.key_id as "keyId", b.period, b.limit_nano::float8 as "limitNanoUsd",
      coalesce(p.spent_nano, 0)::float8 as "spentNanoUsd", coalesce(p.held_nano, 0)::float8 as "reservedNanoUsd",
      ((date_trunc(b.period, now() at time zone 'UTC')) + ('1 ' || b.period)::interval) at time zone 'UTC' as "resetsAt",
      b.version, b.created_at as "createdAt"`

    const current = sql`
      left join budget_periods p on p.tenant_id = b.tenant_id and p.budget_id = b.id
        and p.period_start = date_trunc(b.period, now(), 'UTC')`

    const inTransaction = <A>(change: Effect.Effect<A, SqlError>) => Effect.orDie(sql.withTransaction(change))

    const one = Rows.first(Row)

    const find = ({ tenantId }: TenantScope, id: BudgetId): Effect.Effect<Option.Option<Budget>> =>
      one(sql`select ${columns} from budgets b ${current} where b.tenant_id = ${tenantId} and b.id = ${id}`)

    /** Oldest first. */
    const page = ({ tenantId }: TenantScope, { limit, after }: PageRequest): Effect.Effect<Page<Budget>> =>
      sql`
        select ${columns} from budgets b ${current}
        where b.tenant_id = ${tenantId} and ${after === undefined ? sql`true` : sql`b.id > ${after}`}
        order by b.id limit ${limit + 1}`.pipe(Rows.page(Row, limit))

    const selectSubject = (tenantId: string, { agentId, keyId }: CreateBudget) => {
      if (agentId !== undefined)
        return sql`select id from agents where tenant_id = ${tenantId} and id = ${agentId}`
      if (keyId !== undefined) {
        return sql`select id from api_keys
          where tenant_id = ${tenantId} and id = ${keyId} and scope = 'agent' and status <> 'REVOKED'`
      }
      return sql`select id from tenants where id = ${tenantId}`
    }

    /** Serializes changes of a tenant's budgets. */
    const lockBudgets = (tenantId: string) =>
      sql`select tenant_id from subscriptions where tenant_id = ${tenantId} for no key update`

    /**
     * `missing`: the tenant has no such agent or key. `full`: it has {@link maxBudgets}. `taken`: there is one for the same
     * subject and period.
     */
    const insert = Effect.fn("BudgetStore.insert")(function* (
      { tenantId }: TenantScope,
      id: BudgetId,
      given: CreateBudget
    ) {
      const { agentId, keyId, limitNanoUsd, period } = given
      yield* lockBudgets(tenantId)
      const subject = yield* sql`${selectSubject(tenantId, given)} for key share`
      if (subject.length === 0) return "missing" as const
      const counted =
        yield* sql`select id from budgets where tenant_id = ${tenantId} limit ${maxBudgets}::int`
      if (counted.length === maxBudgets) return "full" as const
      const made = yield* sql`
        insert into budgets (tenant_id, id, agent_id, key_id, period, limit_nano)
        values (${tenantId}, ${id}, ${agentId ?? null}, ${keyId ?? null}, ${period}, ${limitNanoUsd}::bigint)
        on conflict (tenant_id, agent_id, key_id, period) do nothing returning id`
      yield* sql`update subscriptions set has_budgets = true where tenant_id = ${tenantId}`
      return made.length === 1 ? ("made" as const) : ("taken" as const)
    }, inTransaction)

    /**
     * Sets a new limit. Thresholds that are already passed are not reported again. False when the tenant has no such
     * budget, or its version is not `expected`.
     */
    const setLimit = Effect.fn("BudgetStore.setLimit")(function* (
      { tenantId }: TenantScope,
      id: BudgetId,
      limitNanoUsd: number,
      expected: number | null
    ) {
      const changed = yield* sql`
        update budgets set limit_nano = ${limitNanoUsd}::bigint, version = version + 1
        where tenant_id = ${tenantId} and id = ${id} and version = coalesce(${expected}::int, version) returning id`
      if (changed.length === 0) return false
      yield* sql`
        update budget_periods p set reported_percent = case
          when p.spent_nano >= b.limit_nano then 100 when p.spent_nano >= b.limit_nano * 0.8 then 80 else 0 end
        from budgets b
        where p.tenant_id = ${tenantId} and p.budget_id = ${id} and b.tenant_id = p.tenant_id and b.id = p.budget_id`
      return true
    }, inTransaction)

    /** Also removes the reservations of running turns. False when the tenant has no such budget. */
    const remove = Effect.fn("BudgetStore.remove")(function* ({ tenantId }: TenantScope, id: BudgetId) {
      yield* lockBudgets(tenantId)
      const removed =
        yield* sql`delete from budgets where tenant_id = ${tenantId} and id = ${id} returning id`
      yield* sql`
        update subscriptions set has_budgets = exists (select from budgets b where b.tenant_id = ${tenantId})
        where tenant_id = ${tenantId}`
      return removed.length === 1
    }, inTransaction)

    /**
     * Removes periods of all tenants, except the two newest of each budget, and those that a running turn holds. The
     * older of the two has the cost of the dearest turn, which is reserved for the next one. True when there may be
     * more.
     */
    const prune = sql`/* every tenant: sweep */
      with old as materialized (
        select p.tenant_id, p.budget_id, p.period_start from budget_periods p
        where tenant_is_swept(p.tenant_id)
          and exists (
            select from budget_periods later
            where later.tenant_id = p.tenant_id and later.budget_id = p.budget_id and later.period_start > p.period_start
            offset 1
          )
          and not exists (
            select from budget_holds h
            where h.tenant_id = p.tenant_id and h.budget_id = p.budget_id and h.period_start = p.period_start
          )
        limit ${pruneBatch}::int for update skip locked
      )
      delete from budget_periods p using old
      where (p.tenant_id, p.budget_id, p.period_start) = (old.tenant_id, old.budget_id, old.period_start)
      returning p.budget_id`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.length === pruneBatch),
      Effect.withSpan("BudgetStore.prune")
    )

    return { find, page, insert, setLimit, remove, prune } as const
  })
}) {}
