/** Calls of models that belong to no turn: their reservation in the tenant's budgets, and their usage. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { ExhaustedBudget } from "../../domain/billing/Budget.ts"
import { type Bill, sumOf } from "../../domain/billing/Cost.ts"
import type { ModelCallKind } from "../../domain/billing/ModelCall.ts"
import type { RunId } from "../../domain/Ids.ts"
import { eventWrites } from "../events/ReportedEvents.ts"
import { modelUsageWrites } from "./ModelUsage.ts"
import {
  type BudgetedTurn,
  readBudgets,
  reservedBudgets,
  settledBudgets,
  thresholdEvents
} from "./TurnBudget.ts"
import * as Rows from "../Rows.ts"

/** The end of calls that have a reservation. */
export interface CallSettlement {
  /** The id under which they were reserved. */
  readonly id: RunId
  readonly kind: ModelCallKind
  readonly bills: ReadonlyArray<Bill>
}

export class OtherModelCallStore extends Effect.Service<OtherModelCallStore>()(
  "store/billing/OtherModelCalls",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** Reserves an amount as a turn does. Returns the exhausted budget, if there is one; then nothing is reserved. */
      const reserve = (holder: BudgetedTurn) =>
        sql`
          select spent_budget as "spentBudget"
          from (select ${reservedBudgets(sql, holder)} from subscriptions where tenant_id = ${holder.tenantId}) tenant`.pipe(
          Rows.first(Schema.Struct({ spentBudget: Schema.NullOr(ExhaustedBudget) })),
          Effect.map(Option.flatMap(({ spentBudget }) => Option.fromNullable(spentBudget))),
          Effect.withSpan("OtherModelCallStore.reserve")
        )

      /** Adds the calls to the usage, and replaces their reservation by their cost. */
      const settle = ({ agentId, tenantId }: AgentScope, { bills, id, kind }: CallSettlement) => {
        const cost = sumOf(bills)
        const sum = (of: (bill: Bill) => number) => bills.reduce((total, bill) => total + of(bill), 0)
        return sql`
        with settled as (
          select ${agentId}::text as agent_id, id as tenant_id, ${id}::text as id, period_start_of(id) as period_start
          from tenants where id = ${tenantId} for key share
        ),
        ${settledBudgets(sql, bills)},
        ${eventWrites(sql, thresholdEvents(sql))},
        ${modelUsageWrites(sql, bills, sql`settled`)},
        counted as (
          insert into other_model_usage as used (
            tenant_id, agent_id, period_start, day, kind, calls, unpriced_calls, input_tokens, output_tokens, cost_nano
          )
          select settled.tenant_id, settled.agent_id, settled.period_start, (now() at time zone 'UTC')::date, ${kind},
            ${bills.length}::int, ${cost.unpricedCalls}::int, ${sum(({ inputTokens }) => inputTokens)}::bigint,
            ${sum(({ outputTokens }) => outputTokens)}::bigint, ${cost.nanoUsd ?? 0}::bigint
          from settled where ${bills.length}::int > 0
          on conflict (tenant_id, agent_id, period_start, day, kind) do update set calls = used.calls + excluded.calls,
            unpriced_calls = used.unpriced_calls + excluded.unpriced_calls,
            input_tokens = used.input_tokens + excluded.input_tokens,
            output_tokens = used.output_tokens + excluded.output_tokens, cost_nano = used.cost_nano + excluded.cost_nano
        )
        select ${readBudgets(sql)}`.pipe(Effect.asVoid, Effect.withSpan("OtherModelCallStore.settle"))
      }

      return { reserve, settle } as const
    })
  }
) {}
