/** Parts of statements that add calls of models to the usage of the period. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Schema from "effect/Schema"
import { type Bill, sumOf } from "../../domain/billing/Cost.ts"
import { jsonbOf } from "../Jsonb.ts"

const encodeBills = jsonbOf(
  Schema.Array(
    Schema.Struct({
      model: Schema.String,
      calls: Schema.Int,
      unpriced: Schema.Int,
      input: Schema.Int,
      cached: Schema.Int,
      output: Schema.Int,
      cost: Schema.Int
    })
  )
)

/** Sums by model, sorted by name, so that all statements lock rows in the same order. */
const byModel = (bills: ReadonlyArray<Bill>) =>
  [...new Set(bills.map(({ model }) => model))].toSorted().map((model) => {
    const own = bills.filter((bill) => bill.model === model)
    const sum = (of: (bill: Bill) => number) => own.reduce((total, bill) => total + of(bill), 0)
    return {
      model,
      calls: own.length,
      unpriced: sumOf(own).unpricedCalls,
      input: sum(({ inputTokens }) => inputTokens),
      cached: sum(({ cachedInputTokens }) => cachedInputTokens),
      output: sum(({ outputTokens }) => outputTokens),
      cost: sumOf(own).nanoUsd ?? 0
    }
  })

/**
 * The CTE `modelled`, which adds `bills` to the usage by model. `from` has the CTE `settled`: tenant_id, agent_id and
 * period_start.
 */
export const modelUsageWrites = (sql: SqlClient.SqlClient, bills: ReadonlyArray<Bill>, from: Fragment) => sql`
  modelled as (
    insert into model_usage as used (
      tenant_id, agent_id, period_start, model, calls, unpriced_calls, input_tokens, cached_input_tokens, output_tokens,
      cost_nano
    )
    select settled.tenant_id, settled.agent_id, settled.period_start, b.model, b.calls, b.unpriced, b.input, b.cached, b.output,
      b.cost
    from ${from}, jsonb_to_recordset(${encodeBills(byModel(bills))}::jsonb)
      as b (model text, calls int, unpriced int, input bigint, cached bigint, output bigint, cost bigint)
    order by b.model
    on conflict (tenant_id, agent_id, period_start, model) do update set calls = used.calls + excluded.calls,
      unpriced_calls = used.unpriced_calls + excluded.unpriced_calls,
      input_tokens = used.input_tokens + excluded.input_tokens,
      cached_input_tokens = used.cached_input_tokens + excluded.cached_input_tokens,
      output_tokens = used.output_tokens + excluded.output_tokens, cost_nano = used.cost_nano + excluded.cost_nano
  )`
