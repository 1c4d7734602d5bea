/** Usage of a period, and the plan's limits. */
import * as Schema from "effect/Schema"
import { Period } from "../agents/Agent.ts"
import { AgentId } from "../Ids.ts"
import { Budget } from "./Budget.ts"
import { Cost } from "./Cost.ts"

const Count = Schema.Int.pipe(Schema.nonNegative())

/** What the model read and wrote. */
const TokenCount = Schema.Struct({ input: Count, output: Count })

/** `data` of `GET /v1/usage`. A limit is the tenant's entitlement, never an amount used. */
export const Usage = Schema.Struct({
  period: Period,
  turns: Schema.Struct({ used: Count, limit: Count, overageEnabled: Schema.Boolean }),
  ingestionJobs: Schema.Struct({ used: Count, limit: Count }),
  sources: Schema.Struct({ active: Count, limit: Count }),
  tokens: TokenCount
}).annotations({ identifier: "Usage" })
export type Usage = typeof Usage.Type

/** What one agent has used of the period. */
export const AgentUsage = Schema.Struct({
  agentId: AgentId,
  name: Schema.String,
  turns: Count,
  ingestionJobs: Count,
  sources: Count,
  tokens: TokenCount,
  cost: Cost
})
export type AgentUsage = typeof AgentUsage.Type

/** The answered turns of a day in UTC that are stored, and their tokens. */
export const DayUsage = Schema.Struct({
  date: Schema.String.annotations({ description: "YYYY-MM-DD, UTC" }),
  turns: Count,
  tokens: TokenCount,
  /** Of all stored turns that began on the day, those that failed included. */
  cost: Cost
})
export type DayUsage = typeof DayUsage.Type

/** What was asked of one model in the period, by turns that failed too. */
export const ModelUsage = Schema.Struct({
  model: Schema.String.annotations({ description: "provider/model" }),
  calls: Count,
  /** Of the input, `cachedInput` is a part. */
  tokens: Schema.Struct({ ...TokenCount.fields, cachedInput: Count }),
  cost: Cost
})
export type ModelUsage = typeof ModelUsage.Type

/** `data` of `GET /api/usage`: the tenant's totals, each model's and each agent's part, and the days of the period that had turns. */
export const TenantUsage = Schema.Struct({
  ...Usage.fields,
  cost: Cost,
  /** What models may cost: all of the tenant's budgets. */
  budgets: Schema.Array(Budget),
  models: Schema.Array(ModelUsage),
  agents: Schema.Array(AgentUsage),
  days: Schema.Array(DayUsage)
})
export type TenantUsage = typeof TenantUsage.Type
