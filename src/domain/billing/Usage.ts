/** Usage of a period, and the plan's limits. */
import * as Schema from "effect/Schema"
import { Period } from "../agents/Agent.ts"
import { AgentId } from "../Ids.ts"
import { Budget } from "./Budget.ts"
import { Cost } from "./Cost.ts"
import { ModelCallKind } from "./ModelCall.ts"
import { StorageUsage } from "./Storage.ts"
import { Count } from "../Count.ts"

/** Tokens that the model read and wrote. */
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

const calls = { calls: Count, tokens: TokenCount, cost: Cost }

/** Calls of models that belong to no turn: one kind in the period. */
const OtherCalls = Schema.Struct({ kind: ModelCallKind, ...calls })

/** The same with the days (UTC) that had calls, in order. */
export const OtherCallsByDay = Schema.Struct({
  ...OtherCalls.fields,
  days: Schema.Array(
    Schema.Struct({ date: Schema.String.annotations({ description: "YYYY-MM-DD, UTC" }), ...calls })
  )
})
export type OtherCallsByDay = typeof OtherCallsByDay.Type

/** Usage of the period by agents that are deleted. */
const DeletedAgentsUsage = Schema.Struct({
  turns: Count,
  ingestionJobs: Count,
  tokens: TokenCount,
  /** Of all calls of models. */
  cost: Cost
})
export type DeletedAgentsUsage = typeof DeletedAgentsUsage.Type

/** Usage of one agent in the period. */
export const AgentUsage = Schema.Struct({
  ...DeletedAgentsUsage.fields,
  agentId: AgentId,
  name: Schema.String,
  sources: Count,
  /** Kinds of calls that belong to no turn. */
  otherCalls: Schema.Array(OtherCalls)
})
export type AgentUsage = typeof AgentUsage.Type

/** Stored answered turns of a day (UTC), and their tokens. Turns of deleted agents are not stored any more. */
export const DayUsage = Schema.Struct({
  date: Schema.String.annotations({ description: "YYYY-MM-DD, UTC" }),
  turns: Count,
  tokens: TokenCount,
  /** Cost of all stored turns that began on the day, including failed ones. */
  cost: Cost
})
export type DayUsage = typeof DayUsage.Type

/** Calls of one model in the period, including those of failed turns and those that belong to no turn. */
export const ModelUsage = Schema.Struct({
  model: Schema.String.annotations({ description: "provider/model" }),
  calls: Count,
  /** `cachedInput` is included in `input`. */
  tokens: Schema.Struct({ ...TokenCount.fields, cachedInput: Count }),
  cost: Cost
})
export type ModelUsage = typeof ModelUsage.Type

/**
 * `data` of `GET /api/usage`: the totals of the tenant, of each model, of each agent and of deleted ones, and the days
 * of the period that had turns.
 */
export const TenantUsage = Schema.Struct({
  ...Usage.fields,
  cost: Cost,
  /** Storage that the tenant's data takes. */
  storage: StorageUsage,
  /** All budgets of the tenant. */
  budgets: Schema.Array(Budget),
  models: Schema.Array(ModelUsage),
  agents: Schema.Array(AgentUsage),
  deletedAgents: DeletedAgentsUsage,
  days: Schema.Array(DayUsage),
  /** Kinds of calls that belong to no turn. */
  otherCalls: Schema.Array(OtherCallsByDay)
})
export type TenantUsage = typeof TenantUsage.Type
